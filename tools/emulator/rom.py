"""The ROM that the emulated machine boots: boot code, page tables, the program with the function, and arrays."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FIRMWARE = Path(__file__).parent / "firmware"
MEMORY = 256 << 20
_FOUR_GIB, _MIB, _PAGE = 1 << 32, 1 << 20, 1 << 12
_BOOT_BYTES, _ROM_UNIT, _LARGEST_ROM = 1 << 16, 1 << 16, 4 << 20
_ORIGIN, _ARRAYS = 1 << 20, 16 << 20
# Present, writable, accessed, dirty; a page of 2 MiB.
_TABLE, _LARGE = 0x23, 0xE3
_ARGUMENTS, _PIECES = 6, 16
_FREESTANDING = (
    *("-O1", "-ffreestanding", "-mgeneral-regs-only", "-mno-red-zone"),
    *("-fno-stack-protector", "-fno-pie", "-fcf-protection=none", "-fno-asynchronous-unwind-tables"),
)
# In an output section that .got.plt shares with others, GNU ld computes R_X86_64_GOT64 wrongly.
_PROGRAM_SCRIPT = """
SECTIONS {
  . = %d;
  .text : { *(.entry) *(.text .text.* .ltext .ltext.*) }
  .rodata : { *(.rodata .rodata.* .lrodata .lrodata.*) }
  .got.plt : ALIGN(64) { *(.got.plt) }
  .got : { *(.got) }
  .data : ALIGN(64) { *(.data .data.* .ldata .ldata.*) }
  .bss : ALIGN(64) { bss_start = .; *(.bss .bss.* .lbss .lbss.* COMMON) bss_end = .; }
  /DISCARD/ : { *(.comment) *(.note*) *(.eh_frame*) }
}
"""
_BOOT_SCRIPT = "SECTIONS { . = %d; .text : { *(.text) . = 0xfff0; *(.reset) . = 0x10000; } /DISCARD/ : { *(*) } }"


class EmulatorError(Exception):
    """Code could not be emulated; the message says why."""


@dataclass(frozen=True)
class Span:
    """Where an array is in the emulated machine's memory."""

    address: int
    size: int


def spans_of(arrays: Sequence[NDArray[np.generic]]) -> list[Span]:
    """Addresses of arrays, each at the start of a page with an empty one behind it.

    Raises `EmulatorError` where they are more than the machine can have.
    """
    address, found = _ARRAYS, list[Span]()
    for array in arrays:
        found.append(Span(address, array.nbytes))
        address += (array.nbytes // _PAGE + 2) * _PAGE
    if len(found) > _ARGUMENTS or address > MEMORY:
        raise EmulatorError(f"arrays must be at most {_ARGUMENTS} in {MEMORY >> 20} MiB, but got {len(found)}")
    return found


def rom_of(
    code: bytes, function: str, arrays: Sequence[NDArray[np.generic]], results: Sequence[int], folder: Path
) -> bytes:
    """The ROM for a call of `function` of the object file `code` with pointers to `arrays`; it is built in `folder`.

    `results` are the numbers of the arrays that are written to the console afterwards.  Raises `EmulatorError`.
    """
    spans = spans_of(arrays)
    # Memory is zero at the start.
    loaded = [(array.tobytes(), span) for array, span in zip(arrays, spans, strict=True) if array.any()]
    program_bytes = len(_program(code, function, 0, folder))
    parts = [_page_tables(), b"", *(data for data, _ in loaded)]
    job_bytes = 8 * (_ARGUMENTS + 2 + 3 * _PIECES)
    starts, end = list[int](), program_bytes + job_bytes
    for part in parts:
        starts.append(-(-end // _PAGE) * _PAGE)
        end = starts[-1] + len(part)
    size = -(-(end + _BOOT_BYTES) // _ROM_UNIT) * _ROM_UNIT
    if size > _LARGEST_ROM:
        raise EmulatorError(f"a ROM must have at most {_LARGEST_ROM >> 20} MiB, but got {size >> 10} KiB")
    base = _FOUR_GIB - size
    pieces = [(span.address, base + start, span.size) for start, (_, span) in zip(starts[2:], loaded, strict=True)]
    pieces += [(0, spans[index].address, spans[index].size) for index in results]
    addresses = [span.address for span in spans]
    job = struct.pack(f"<{_ARGUMENTS}Q2Q", *addresses, *[0] * (_ARGUMENTS - len(spans)), len(loaded), len(results))
    job += b"".join(struct.pack("<3Q", *piece) for piece in pieces)
    rom = bytearray(size)
    rom[:program_bytes] = _program(code, function, base + program_bytes, folder)
    rom[program_bytes : program_bytes + len(job)] = job
    parts[0] = _page_tables(base + starts[0])
    for start, part in zip(starts, parts, strict=True):
        rom[start : start + len(part)] = part
    rom[-_BOOT_BYTES:] = _boot(base + starts[0], base, program_bytes, folder)
    return bytes(rom)


def _page_tables(base: int = 0) -> bytes:
    """Tables that map the first 4 GiB to themselves in pages of 2 MiB, at the address `base`."""
    levels = [np.zeros(512, np.uint64) for _ in range(2)]
    levels[0][0] = base + _PAGE + _TABLE
    levels[1][:4] = base + np.arange(2, 6, dtype=np.uint64) * _PAGE + _TABLE
    pages = np.arange(2048, dtype=np.uint64) * (2 * _MIB) + _LARGE
    return b"".join(level.tobytes() for level in (*levels, pages))


def _boot(pages: int, program: int, program_bytes: int, folder: Path) -> bytes:
    symbols = {"PAGES": pages, "PROGRAM": program, "PROGRAM_BYTES": program_bytes, "ORIGIN": _ORIGIN}
    defined = [f"-Wa,--defsym,{name}={value}" for name, value in symbols.items()]
    _call("gcc", *defined, "-c", FIRMWARE / "boot.S", "-o", folder / "boot.o")
    return _linked("boot", _BOOT_SCRIPT % (_FOUR_GIB - _BOOT_BYTES), [folder / "boot.o"], folder)


def _program(code: bytes, function: str, job: int, folder: Path) -> bytes:
    """The monitor and the object file, linked to run at their place in RAM; the job is at `job`."""
    (folder / "code.o").write_bytes(code)
    monitor = folder / "monitor.o"
    if not monitor.exists():
        _call("gcc", *_FREESTANDING, "-c", FIRMWARE / "monitor.c", "-o", monitor)
    symbols = [f"--defsym=JOB={job}", f"--defsym=under_test={function}"]
    return _linked("program", _PROGRAM_SCRIPT % _ORIGIN, [*symbols, monitor, folder / "code.o"], folder)


def _linked(name: str, script: str, inputs: Sequence[str | Path], folder: Path) -> bytes:
    (folder / f"{name}.ld").write_text(script)
    linked, binary = folder / f"{name}.elf", folder / f"{name}.bin"
    _call("ld", "--no-warn-rwx-segments", "-T", folder / f"{name}.ld", "-o", linked, *inputs)
    _call("objcopy", "-O", "binary", linked, binary)
    return binary.read_bytes()


def _call(*command: str | Path) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise EmulatorError(f"{command[0]} failed: {ran.stderr.strip()[-400:]}")
