"""Machine code of a module as an object file, for another CPU than this machine's too."""

from __future__ import annotations

import tempfile
from pathlib import Path

from qdialect import context
from qdialect._mlir import ExecutionEngine, ir
from qdialect.context import captured_diagnostics
from qdialect.diagnostics import CompileError
from qdialect.runtime.jit import OPTIMIZATION_LEVEL
from qdialect.target import Target


def object_code(module: ir.Module, target: Target) -> bytes:
    """An ELF object of a module of the LLVM dialect for `target`, position-independent; nothing of it is executed.

    Raises `CompileError` where LLVM refuses the module.
    """
    copy = context.copy(module)
    _name_target(copy, target)
    with captured_diagnostics(copy.context) as said, tempfile.TemporaryDirectory() as folder:
        try:
            engine = ExecutionEngine(copy, opt_level=OPTIMIZATION_LEVEL, enable_object_dump=True, enable_pic=True)
        except RuntimeError as error:
            raise CompileError("module cannot be turned into machine code", tuple(said)) from error
        path = Path(folder) / "module.o"
        engine.initialize()
        engine.dump_to_object_file(str(path))
        return path.read_bytes()


def _name_target(module: ir.Module, target: Target) -> None:
    """Say on each function which CPU it is for: what the module does not say, LLVM takes from this machine."""
    with module.context:
        # Without any, this machine's would be taken.
        names = sorted(target.features) or ["sse2"]
        attribute = ir.Attribute.parse(f"#llvm.target_features<{[f'+{name}' for name in names]}>".replace("'", '"'))
        for op in module.body.operations:
            op.operation.attributes["target_cpu"] = ir.StringAttr.get(target.cpu)
            op.operation.attributes["target_features"] = attribute
