"""Machine code as text of an assembler, by binutils' objdump: LLVM's own printer is no part of the bindings."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from qdialect.child_processes import ChildError, tool_output
from qdialect.diagnostics import CompileError


def disassembly(code: bytes) -> str:
    """What objdump says of an object file; raises `CompileError` where it does not run."""
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
