"""Functions that were outlined for an external code generator: their attributes, and inlining them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qdialect.ir._mlir import ir
from qdialect.ir.context import functions, name_of

EXTERNAL = "qnn.external"
"""Name of the op that an outlined function holds; ``qnn.region`` for several."""

REGION = "qnn.region"

PARAMETERS = "qnn.parameters"
"""The attributes of that op; of a region's ops in an array."""

TARGET = "qnn.external_target"
"""The target of an extern function: its library is called at run time; it is inlined only on request."""

SYMBOL = "qnn.symbol"
"""The C function of the target's library that computes it."""


def function_of(op: ir.Operation) -> ir.Operation:
    """The function that `op` stands in."""
    block = op.block
    assert block is not None, "an op of a function stands in a block"
    return block.owner.operation


def is_outlined(function: ir.Operation) -> bool:
    """Whether a function was outlined, and its body is here."""
    return EXTERNAL in function.attributes and len(function.regions[0].blocks) == 1


def is_extern(function: ir.Operation) -> bool:
    """Whether an outlined function is extern: the library of a target implements it."""
    return is_outlined(function) and TARGET in function.attributes


def extern_functions(module: ir.Module) -> Mapping[str, ir.Operation]:
    """The extern functions of `module`, by name."""
    return {name_of(f): f for f in functions(module) if is_extern(f)}


def target_of(function: ir.Operation) -> str:
    """The target of an extern function."""
    return ir.StringAttr(function.attributes[TARGET]).value


def symbol_of(function: ir.Operation) -> str:
    """The C function that implements an extern function: its attribute, else the default name."""
    if SYMBOL in function.attributes:
        return ir.StringAttr(function.attributes[SYMBOL]).value
    return symbol_for(target_of(function), ir.StringAttr(function.attributes[EXTERNAL]).value)


def symbol_for(target: str, external: str) -> str:
    """The default name in the library of `target` of the function for ops of one name: ``npu_fused_conv2d``."""
    return f"{target}_{external.rpartition('.')[2]}"


def free_name(function: ir.Operation, stem: str) -> str:
    """A name that begins with `stem` and that no function of the module has."""
    module = function.parent
    assert module is not None, "a function stands in a module"
    taken = {name_of(f.operation) for f in module.regions[0].blocks[0].operations}
    return next(name for name in (f"{stem}_{number}" for number in range(len(taken) + 1)) if name not in taken)


def inline_outlined(module: ir.Module, keep_extern: bool = False) -> None:
    """Replace calls of outlined functions by the bodies; those functions are erased.

    With `keep_extern`, extern functions and their calls stay.
    """
    found = functions(module)
    outlined = {name_of(f): f for f in found if is_outlined(f) and not (keep_extern and is_extern(f))}
    for function in found if outlined else ():
        for block in function.regions[0].blocks:
            for op in list(block.operations):
                _inline(op.operation, outlined)
    for function in outlined.values():
        function.erase()


def _inline(call: ir.Operation, outlined: Mapping[str, ir.Operation]) -> None:
    if call.name != "func.call":
        return
    function = outlined.get(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
    if function is None:
        return
    with ir.InsertionPoint(call):
        values = inlined(function, call.operands)
    for result, value in zip(call.results, values, strict=True):
        result.replace_all_uses_with(value)
    call.erase()


def inlined(function: ir.Operation, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """The results of the ops of `function`, put at the current insertion point."""
    block = function.regions[0].blocks[0]
    values: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))
    *body, last = [op.operation for op in block.operations]
    for op in body:
        clone = op.clone()
        for index, operand in enumerate(op.operands):
            clone.operands[index] = values[operand]
        values.update(zip(op.results, clone.results, strict=True))
    return [values[result] for result in last.operands]
