"""Machine code as text of an assembler, by binutils' objdump: LLVM's own printer is no part of the bindings."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from qdialect.diagnostics import CompileError


def disassembly(code: bytes) -> str:
    """What objdump says of an object file; raises `CompileError` where it does not run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.o"
        path.write_bytes(code)
        try:
            command = ["objdump", "--disassemble", "--reloc", "--no-show-raw-insn", path.name]
            ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        except FileNotFoundError as error:
            raise CompileError("assembly is printed by objdump, which is not there: install binutils") from error
        except (OSError, subprocess.CalledProcessError) as error:
            raise CompileError(f"objdump cannot print the assembly: {error}") from error
    return ran.stdout
