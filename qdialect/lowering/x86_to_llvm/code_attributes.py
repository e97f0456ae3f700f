"""How a module of the LLVM dialect is compiled: for which CPU, as attributes of its functions, and how thoroughly.

LLVM takes attributes that a module lacks from the machine that it runs on.
"""

from __future__ import annotations

from qdialect import targets
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.lowered import target_name_of
from qdialect.targets import Target

_FUNCTION = "llvm.func"
_ALL, _NOTHING = 3, 0


def name_target(module: ir.Module, target: Target) -> None:
    """Set the CPU and features of each function."""
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
    if not target.is_generic and not target.is_portable and target.kind != targets.host().kind:
        name_target(module, target)


def optimization_level(module: ir.Module) -> int:
    """The level of LLVM's optimizations of its own language, before it selects instructions.

    Code of the target's instructions leaves them nothing to find, and they take as long as all that comes after. Plain
    vector ops, for targets without instructions, and modules that were not lowered here get all of them. Instructions
    are selected, scheduled and given registers alike at each level.
    """
    return _NOTHING if is_left_as_it_is(module) else _ALL


def is_left_as_it_is(module: ir.Module) -> bool:
    """Whether LLVM selects instructions for a module, from phase `linalg` on, without optimizing it before."""
    name = target_name_of(module)
    target = targets.resolve(name) if name else targets.GENERIC
    return not target.is_generic and not target.is_portable
