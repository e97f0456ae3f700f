"""Machine code of a module as an object file, on a machine that need not be able to execute it."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

from qdialect._mlir import ExecutionEngine, ir
from qdialect.aot import elf
from qdialect.context import captured_diagnostics
from qdialect.diagnostics import CompileError
from qdialect.lowering.code_attributes import optimization_level

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
    with captured_diagnostics(module.context) as said, tempfile.TemporaryDirectory() as folder:
        try:
            level = optimization_level(module)
            engine = ExecutionEngine(module, opt_level=level, enable_object_dump=True, enable_pic=True)
            for symbol in _declared(module):
                engine.raw_register_runtime(symbol, ctypes.c_void_p(_ANYWHERE))
            # All of the module is compiled with it.
            engine.raw_lookup(entry)
            path = Path(folder) / "module.o"
            engine.dump_to_object_file(str(path))
            code = path.read_bytes()
        except (RuntimeError, OSError) as error:
            raise CompileError("module cannot be turned into machine code", tuple(said)) from error
    return elf.ordinary(code, lambda name: name.startswith(WRAPPER) and name != shown)


def _declared(module: ir.Module) -> list[str]:
    """The functions that other libraries have."""
    found = [op.operation for op in module.body.operations if op.operation.name == "llvm.func"]
    return [ir.StringAttr(op.attributes["sym_name"]).value for op in found if not len(op.regions[0].blocks)]
