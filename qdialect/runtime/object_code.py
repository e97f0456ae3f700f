"""Machine code of a module as an object file, for another CPU than this machine's too."""

from __future__ import annotations

from qdialect import context
from qdialect._mlir import ir
from qdialect.aot.object_file import object_file
from qdialect.target import Target

_ENTRY = "main"


def object_code(module: ir.Module, target: Target) -> bytes:
    """An ELF object of a module of the LLVM dialect for `target`, position-independent; nothing of it is executed.

    Raises `CompileError` where LLVM refuses the module.
    """
    copy = context.copy(module)
    _name_target(copy, target)
    return object_file(copy, _ENTRY)


def _name_target(module: ir.Module, target: Target) -> None:
    """Say on each function which CPU it is for: what the module does not say, LLVM takes from this machine."""
    with module.context:
        # Without any, this machine's would be taken.
        names = sorted(target.features) or ["sse2"]
        attribute = ir.Attribute.parse(f"#llvm.target_features<{[f'+{name}' for name in names]}>".replace("'", '"'))
        for op in module.body.operations:
            op.operation.attributes["target_cpu"] = ir.StringAttr.get(target.cpu)
            op.operation.attributes["target_features"] = attribute
