"""Calls of functions of object files on an emulated CPU."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tools.emulator.rom import MEMORY, EmulatorError, rom_of

HOME = Path(__file__).parents[2] / ".emulator"
"""Where `install` puts the emulator."""
_LAUNCHER = HOME / "bochs"
_DEADLINE_S = 120
_UNDEFINED_INSTRUCTION = 6
_PAGE = 1 << 12
_CONFIGURATION = f"""\
display_library: rfb, options="timeout=0"
memory: guest={MEMORY >> 20}, host={MEMORY >> 20}
romimage: file=rom.bin
vgaromimage: file=vga.bin
vga: update_freq=1, realtime=0
cpu: model=MODEL, ips=4000000, reset_on_triple_fault=0
clock: sync=none
port_e9_hack: enabled=1
plugin_ctrl: unmapped=1
sound: waveoutdrv=dummy, waveindrv=dummy, midioutdrv=dummy
log: bochs.log
panic: action=fatal
error: action=report
info: action=ignore
"""


class UndefinedInstructionError(EmulatorError):
    """The code has an instruction that the CPU lacks."""


@dataclass(frozen=True)
class Ran:
    """What a call left behind."""

    arrays: tuple[NDArray[np.generic], ...]
    """The arrays that were asked for."""
    status: int
    """What the function returned."""
    states: int
    """XCR0: the register states that the CPU has."""


def problem() -> str | None:
    """Why nothing can be emulated here; None where it can."""
    if not _LAUNCHER.exists():
        return f"{HOME.name} has no emulator: make check-emulated fetches it where it can"
    missing = [tool for tool in ("gcc", "ld", "objcopy", "unshare") if shutil.which(tool) is None]
    return f"needs {', '.join(missing)}" if missing else None


def call(code: bytes, function: str, arrays: Sequence[NDArray[np.generic]], results: Sequence[int], model: str) -> Ran:
    """Call `function` of the object file `code` with pointers to copies of `arrays` on the CPU `model` of Bochs.

    `results` are the numbers of the arrays to bring back.  Raises `UndefinedInstructionError` where the CPU lacks an
    instruction, and `EmulatorError` for every other failure.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rom.bin").write_bytes(rom_of(code, function, arrays, results, folder))
        # A display adapter must have firmware; nothing runs this.
        (folder / "vga.bin").write_bytes(bytes(_PAGE))
        (folder / "bochsrc").write_text(_CONFIGURATION.replace("MODEL", model))
        said, errors = _run(folder)
    head = re.search(rb"@@ states (\w+) status (\w+)\n", said)
    if head is None or not said.rstrip().endswith(b"@@ done"):
        raise _failure(said, errors)
    found, at = list[NDArray[np.generic]](), head.end()
    for index in results:
        array = arrays[index]
        found.append(np.frombuffer(said, array.dtype, array.size, at).reshape(array.shape))
        at += array.nbytes
    return Ran(tuple(found), int(head[2], 16), int(head[1], 16))


def _run(folder: Path) -> tuple[bytes, str]:
    """What the machine wrote to its console, and what the emulator said of errors."""
    # The display listens on a port: in a network of its own.
    command = ["unshare", "-rn", str(_LAUNCHER), "-q", "-f", "bochsrc"]
    try:
        ran = subprocess.run(command, cwd=folder, capture_output=True, timeout=_DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        raise EmulatorError(f"did not end within {_DEADLINE_S} s") from None
    log = folder / "bochs.log"
    text = log.read_text(errors="replace") if log.exists() else ""
    said = ran.stdout[ran.stdout.find(b"\n@@ states") :]
    end = said.rfind(b"@@ done\n")
    return said[: end + len(b"@@ done\n")] if end >= 0 else said, ran.stderr.decode(errors="replace") + text


def _failure(said: bytes, errors: str) -> EmulatorError:
    raised = re.search(rb"!! exception (\w+) at (\w+)", said)
    if raised is None:
        return EmulatorError(f"the machine said {said[:200]!r}; {errors[-1500:]}")
    vector, address = (int(number, 16) for number in raised.groups())
    if vector == _UNDEFINED_INSTRUCTION:
        return UndefinedInstructionError(f"undefined instruction at {address:#x}")
    return EmulatorError(f"exception {vector} at {address:#x}")
