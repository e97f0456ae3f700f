"""Machine code of a module as an object file, on a machine that need not be able to execute it, and as text."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import struct
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qdialect.aot.record import DESCRIPTION, Network, sealed
from qdialect.ir import context
from qdialect.ir._mlir import ExecutionEngine, ir
from qdialect.ir.context import captured_diagnostics
from qdialect.lowering.x86_to_llvm.to_llvm import name_target, optimization_level
from qdialect.support.child_processes import ChildError, tool_output
from qdialect.support.diagnostics import CompileError
from qdialect.support.files import written_in_memory
from qdialect.targets import Target

WRAPPER = "_mlir_"
"""How the names of the engine's own entry points begin, one for every public function: it takes an array of pointers to
the function's arguments."""

# The engine links what it compiles, and nothing of it is executed: any address will do.
_ANYWHERE = 1 << 12


def object_file(module: ir.Module, entry: str, *, shown: str = "") -> bytes:
    """An ELF object of a module of the LLVM dialect, position-independent; `entry` is one of its public functions.

    The engine's entry points are hidden, all but `shown`. The same module gives the same bytes.

    Raises `CompileError` where LLVM refuses the module.
    """
    with captured_diagnostics(module.context) as said:
        try:
            level = optimization_level(module)
            engine = ExecutionEngine(module, opt_level=level, enable_object_dump=True, enable_pic=True)
            for symbol in _declared(module):
                engine.raw_register_runtime(symbol, ctypes.c_void_p(_ANYWHERE))
            # All of the module is compiled with it.
            engine.raw_lookup(entry)
            code = written_in_memory(engine.dump_to_object_file)
        except (RuntimeError, OSError) as error:
            raise CompileError("module cannot be turned into machine code", tuple(said)) from error
    return ordinary(code, lambda name: name.startswith(WRAPPER) and name != shown)


def _declared(module: ir.Module) -> list[str]:
    """The functions that other libraries have."""
    found = [op.operation for op in module.body.operations if op.operation.name == "llvm.func"]
    return [ir.StringAttr(op.attributes["sym_name"]).value for op in found if not len(op.regions[0].blocks)]


# Machine code of a module as an object file, for another CPU than this machine's too.

_ENTRY = "main"


def object_code(module: ir.Module, target: Target) -> bytes:
    """An ELF object of a module of the LLVM dialect for `target`, position-independent; nothing of it is executed.

    Raises `CompileError` where LLVM refuses the module.
    """
    copy = context.copy(module)
    name_target(copy, target)
    return object_file(copy, _ENTRY)


# Object files of the JIT compiler as those that a C compiler makes.
#
# LLVM compiles for a process whose memory may lie anywhere: code and constants stand in the sections of the large code
# model, which linkers put among writable data. Their code addresses everything by 64-bit distances and is right in the
# ordinary sections too. The JIT's own entry points, one for each public function, are hidden.

# ELF-64 of the System V ABI, chapter 4.
_SECTION = struct.Struct("<2I4Q2I2Q")
_SYMBOL = struct.Struct("<IBBHQQ")
_SECTIONS_AT, _SECTION_COUNT_AT, _NAMES_AT = 0x28, 0x3C, 0x3E
_SYMBOL_TABLE, _FUNCTION = 2, 2
_LARGE = 1 << 28
"""SHF_X86_64_LARGE."""
_HIDDEN = 2

_ORDINARY = {".ltext": ".text", ".lrodata": ".rodata"}


def ordinary(code: bytes, is_hidden: Callable[[str], bool]) -> bytes:
    """`code`, an x86-64 ELF object, without sections of the large code model; symbols of `is_hidden` are hidden."""
    raw = bytearray(code)
    sections = _sections(raw)
    (names_index,) = struct.unpack_from("<H", raw, _NAMES_AT)
    names = _content(raw, sections[names_index])
    added = bytearray()
    for section in sections:
        old = _text(names, section[0])
        prefix, stem = (".rela", old.removeprefix(".rela")) if old.startswith(".rela.") else ("", old)
        found = next((large for large in _ORDINARY if stem == large or stem.startswith(f"{large}.")), None)
        new = old if found is None else prefix + _ORDINARY[found] + stem.removeprefix(found)
        if new != old:
            section[0] = len(names) + len(added)
            added += new.encode() + b"\0"
        section[2] &= ~_LARGE
        if section[1] == _SYMBOL_TABLE:
            _hide(raw, section, _content(raw, sections[section[6]]), is_hidden)
    return _with_names(raw, sections, names_index, names + bytes(added))


def renamed(code: bytes, names: Mapping[str, str]) -> bytes:
    """`code`, an x86-64 ELF object, with other names for its symbols."""
    raw = bytearray(code)
    sections = _sections(raw)
    (table,) = (section for section in sections if section[1] == _SYMBOL_TABLE)
    texts = bytearray(_content(raw, sections[table[6]]))
    for at in range(table[4], table[4] + table[5], _SYMBOL.size):
        name, *rest = _SYMBOL.unpack_from(raw, at)
        if new := names.get(_text(texts, name)):
            _SYMBOL.pack_into(raw, at, len(texts), *rest)
            texts += new.encode() + b"\0"
    return _with_names(raw, sections, table[6], bytes(texts))


@dataclass(frozen=True)
class Symbol:
    """A function of an object file: its section, where it starts there, and its bytes."""

    name: str
    section: int
    start: int
    size: int


def functions_of(code: bytes) -> list[Symbol]:
    """The functions that an x86-64 ELF object defines."""
    raw = bytearray(code)
    sections = _sections(raw)
    found: list[Symbol] = []
    for table in (section for section in sections if section[1] == _SYMBOL_TABLE):
        names = _content(raw, sections[table[6]])
        for at in range(table[4], table[4] + table[5], _SYMBOL.size):
            name, info, _, section, start, size = _SYMBOL.unpack_from(raw, at)
            if info & 0xF == _FUNCTION and section:
                found.append(Symbol(_text(names, name), section, start, size))
    return found


def _sections(raw: bytearray) -> list[list[int]]:
    (table,) = struct.unpack_from("<Q", raw, _SECTIONS_AT)
    (count,) = struct.unpack_from("<H", raw, _SECTION_COUNT_AT)
    return [list(_SECTION.unpack_from(raw, table + _SECTION.size * index)) for index in range(count)]


def _with_names(raw: bytearray, sections: Sequence[list[int]], index: int, names: bytes) -> bytes:
    """The object with `sections`, the one of names at `index` moved to the end."""
    sections[index][4:6] = len(raw), len(names)
    (table,) = struct.unpack_from("<Q", raw, _SECTIONS_AT)
    for number, section in enumerate(sections):
        _SECTION.pack_into(raw, table + _SECTION.size * number, *section)
    return bytes(raw) + names


def _content(raw: bytearray, section: Sequence[int]) -> bytes:
    return bytes(raw[section[4] : section[4] + section[5]])


def _hide(raw: bytearray, table: Sequence[int], names: bytes, is_hidden: Callable[[str], bool]) -> None:
    for at in range(table[4], table[4] + table[5], _SYMBOL.size):
        name, info, other, *rest = _SYMBOL.unpack_from(raw, at)
        if is_hidden(_text(names, name)):
            _SYMBOL.pack_into(raw, at, name, info, other | _HIDDEN, *rest)


def _text(names: bytes | bytearray, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode()


# Machine code as text of an assembler, by binutils' objdump: LLVM's own printer is no part of the bindings.


def disassembly(code: bytes) -> str:
    """The output of objdump for an object file; raises `CompileError` if it does not run."""
    tool = shutil.which("objdump")
    if tool is None:
        raise CompileError("assembly is printed by objdump, which is not there: install binutils")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "network.o")
        path.write_bytes(code)
        command = [os.path.abspath(tool), "--disassemble", "--reloc", "--no-show-raw-insn", path.name]
        try:
            return tool_output(command, Path(folder))
        except ChildError as error:
            raise CompileError(f"objdump cannot print the assembly: {error}") from error


# A shared library from an object file, by the system's C compiler.

COMPILERS = ("cc", "gcc", "clang")
"""Commands that are looked for, in this order, where the environment variable ``CC`` names none."""


def shared_library(code: bytes, network: Network, file_name: str) -> bytes:
    """The shared library `file_name` with the network of an object file.

    Only the functions of the C interface are visible. Nothing of the compiler's start-up files is in it, so that
    loading it runs nothing. Its checksum stands behind it. Raises `CompileError` where there is no C compiler, and
    where it fails.
    """
    command = c_compiler()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "network.o").write_bytes(code)
            (folder / "symbols.map").write_text(f"{{ global: {network.name}_*; {DESCRIPTION}; local: *; }};\n")
            options = [
                # The compiler would cut an option of -Wl at the commas of a file's name.
                *("-shared", "-nostartfiles", "-Wl,--version-script=symbols.map", "-Xlinker", f"-soname={file_name}"),
                f"-Wl,--defsym={DESCRIPTION}={network.name}_network",
                # The functions of other libraries are found when the network is linked or loaded with these.
                *([] if network.external_calls else ["-Wl,--no-undefined"]),
                *("-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,noexecstack", "-Wl,--as-needed"),
                *("-o", "network.so", "network.o", *(["-fopenmp"] if network.threads > 1 else []), "-lm"),
            ]
            run_linker([*command, *options], folder)
            return sealed((folder / "network.so").read_bytes())
    except OSError as error:
        raise CompileError(
            f"cannot link the network: {error.strerror}: '{error.filename or tempfile.gettempdir()}'"
        ) from error


def c_compiler() -> list[str]:
    """The command of the system's C compiler; raises `CompileError` where there is none."""
    variable = os.environ.get("CC", "")
    try:
        named = shlex.split(variable)
    except ValueError as error:
        raise CompileError(f"CC must name a C compiler, but got '{variable}': {str(error).lower()}") from error
    candidates = [named] if named else [[name] for name in COMPILERS]
    for name, *options in candidates:
        found = shutil.which(name)
        if found:
            # It runs in another folder.
            return [os.path.abspath(found), *options]
    tried = f"CC names '{named[0]}', which is not there" if named else f"none of {', '.join(COMPILERS)} is there"
    raise CompileError(
        f"a shared library is linked by a C compiler, but {tried}: install gcc or clang, or make an object file with "
        "qdialect-compile --emit=obj"
    )


def run_linker(command: Sequence[str], folder: Path) -> None:
    """Run a C compiler in `folder`; raises `CompileError` with the last line that it printed where it fails."""
    try:
        tool_output(command, folder)
    except ChildError as error:
        raise CompileError(f"the C compiler '{command[0]}' cannot link the network: {error}") from error
