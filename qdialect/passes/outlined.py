"""Functions that were outlined for an external code generator: how they are told, and how they are put back."""

from __future__ import annotations

from qdialect._mlir import ir

EXTERNAL = "qnn.external"
"""Name of the op that an outlined function holds."""

PARAMETERS = "qnn.parameters"
"""The attributes of that op."""


def is_outlined(function: ir.Operation) -> bool:
    """Whether a function was outlined, and its body is here."""
    return EXTERNAL in function.attributes and len(function.regions[0].blocks) == 1


def inline_outlined(module: ir.Module) -> None:
    """Replace calls of outlined functions by the bodies; functions that nobody calls are erased."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    outlined = {ir.StringAttr(f.attributes["sym_name"]).value: f for f in functions if is_outlined(f)}
    if not outlined:
        return
    for function in functions:
        for block in function.regions[0].blocks:
            for op in list(block.operations):
                _inline(op.operation, outlined)
    for function in outlined.values():
        function.erase()


def _inline(call: ir.Operation, outlined: dict[str, ir.Operation]) -> None:
    if call.name != "func.call":
        return
    function = outlined.get(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
    if function is None:
        return
    block = function.regions[0].blocks[0]
    values: dict[ir.Value, ir.Value] = dict(zip(block.arguments, call.operands, strict=True))
    *body, last = [op.operation for op in block.operations]
    with ir.InsertionPoint(call):
        for op in body:
            clone = op.clone()
            for index, operand in enumerate(op.operands):
                clone.operands[index] = values[operand]
            values.update(zip(op.results, clone.results, strict=True))
    for result, value in zip(call.results, last.operands, strict=True):
        result.replace_all_uses_with(values[value])
    call.erase()
