"""Neighbouring calls of functions that go to one target become one call of a region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qdialect._mlir import func, ir
from qdialect.locations import joined
from qdialect.passes.outlined import (
    EXTERNAL,
    PARAMETERS,
    REGION,
    SYMBOL,
    TARGET,
    free_name,
    handed_off,
    is_outlined,
    symbol_for,
    target_of,
)


def merge_outlined(module: ir.Module, target: str) -> None:
    """Merge calls of functions that go to `target`: into each call those whose results nothing outside reads.

    So a region has one result, and no path leaves it and comes back.
    """
    functions = {name: function for name, function in handed_off(module).items() if target_of(function) == target}
    callers = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    for caller in callers:
        if not is_outlined(caller):
            _merge_in(caller, functions)
    used = {_callee(op) for caller in callers if not is_outlined(caller) for op in _calls(caller)}
    for name, function in functions.items():
        if name not in used:
            function.erase()


def _merge_in(caller: ir.Operation, functions: Mapping[str, ir.Operation]) -> None:
    left = [op for op in _calls(caller) if _callee(op) in functions]
    while left:
        region = _region(left[-1], left)
        left = [op for op in left if op not in region]
        if len(region) > 1:
            _merge(caller, region, functions)


def _region(root: ir.Operation, calls: Sequence[ir.Operation]) -> list[ir.Operation]:
    """`root` and those of `calls`, in order, from which every path leads to it through calls of the region."""
    region = [root]
    # Readers come after what they read: going backwards, those of a call are decided before it.
    for call in reversed(calls):
        users = {use.owner.operation for use in call.results[0].uses}
        if call not in region and users and users <= set(region):
            region.append(call)
    return region[::-1]


def _merge(caller: ir.Operation, region: Sequence[ir.Operation], functions: Mapping[str, ir.Operation]) -> None:
    inside = {call.results[0] for call in region}
    operands = [value for call in region for value in call.operands]
    inputs = list(dict.fromkeys(value for value in operands if value not in inside))
    root = region[-1]
    merged = _merged(caller, region, inputs, functions)
    with ir.InsertionPoint(root), joined([call.location for call in region]):
        created = func.CallOp(merged, inputs)
    root.results[0].replace_all_uses_with(created.results[0])
    for call in reversed(region):
        call.erase()


def _merged(
    caller: ir.Operation,
    region: Sequence[ir.Operation],
    inputs: Sequence[ir.Value],
    functions: Mapping[str, ir.Operation],
) -> func.FuncOp:
    """The function that computes what the calls of a region compute together."""
    members = [functions[_callee(call)] for call in region]
    target = target_of(members[0])
    stem = f"{ir.StringAttr(caller.attributes['sym_name']).value}_{REGION.removeprefix('qnn.')}"
    with ir.InsertionPoint(caller), joined([call.location for call in region]):
        type_ = ([value.type for value in inputs], [region[-1].results[0].type])
        created = func.FuncOp(free_name(caller, stem), type_, visibility="private")
        block = created.add_entry_block()
        values: dict[ir.Value, ir.Value] = dict(zip(inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for call, member in zip(region, members, strict=True):
                values[call.results[0]] = _inlined(member, [values[operand] for operand in call.operands])
            func.ReturnOp([values[region[-1].results[0]]])
    created.attributes[EXTERNAL] = ir.StringAttr.get(REGION)
    created.attributes[PARAMETERS] = ir.ArrayAttr.get([member.attributes[PARAMETERS] for member in members])
    created.attributes[TARGET] = ir.StringAttr.get(target)
    created.attributes[SYMBOL] = ir.StringAttr.get(symbol_for(target, REGION))
    return created


def _inlined(function: ir.Operation, arguments: Sequence[ir.Value]) -> ir.Value:
    """The result of the ops of `function`, put at the current insertion point."""
    block = function.regions[0].blocks[0]
    values: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))
    *body, last = [op.operation for op in block.operations]
    for op in body:
        clone = op.clone()
        for index, operand in enumerate(op.operands):
            clone.operands[index] = values[operand]
        values.update(zip(op.results, clone.results, strict=True))
    return values[last.operands[0]]


def _calls(function: ir.Operation) -> list[ir.Operation]:
    blocks = [block for region in function.regions for block in region.blocks]
    return [op.operation for block in blocks for op in block.operations if op.operation.name == "func.call"]


def _callee(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value
