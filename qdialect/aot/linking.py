"""A shared library from an object file, by the system's C compiler."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from qdialect.aot.record import DESCRIPTION, Network, sealed
from qdialect.support.child_processes import ChildError, tool_output
from qdialect.support.diagnostics import CompileError

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
