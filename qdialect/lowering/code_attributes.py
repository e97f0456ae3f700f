"""Which CPU the functions of a module of the LLVM dialect are compiled for, as attributes of each.

What a module does not say, LLVM takes from the machine that it runs on.
"""

from __future__ import annotations

from qdialect import target as targets
from qdialect._mlir import ir
from qdialect.target import Target

_FUNCTION = "llvm.func"


def name_target(module: ir.Module, target: Target) -> None:
    """Say on each function which CPU it is for."""
    with module.context:
        # Without any, this machine's would be taken.
        names = [f"+{name}" for name in sorted(target.code_features)] or ["+sse2"]
        attribute = ir.Attribute.parse(f"#llvm.target_features<{names}>".replace("'", '"'))
        for op in module.body.operations:
            if op.operation.name == _FUNCTION:
                # A CPU's name would stand for features that others of its kind lack; it is what code is timed for.
                op.operation.attributes["target_cpu"] = ir.StringAttr.get("x86-64")
                op.operation.attributes["tune_cpu"] = ir.StringAttr.get(target.cpu)
                op.operation.attributes["target_features"] = attribute


def keep_to_target(module: ir.Module, target: Target) -> None:
    """Let code for this machine use no instruction that `target` lacks.

    Vector code that asks for no instruction may use all that there are.
    """
    if not target.is_generic and not target.is_portable and target.kind != targets.host():
        name_target(module, target)
