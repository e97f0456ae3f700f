"""Loops, and constant indices."""

from __future__ import annotations

from collections.abc import Iterator

from qdialect._mlir import ir

LOOP = "scf.for"


def constant(value: ir.Value) -> int | None:
    """The value of a constant index."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value


def loop_of(variable: ir.Value) -> ir.Operation | None:
    """The `scf.for` whose index is `variable`."""
    block = variable.owner
    holder = block.owner if isinstance(block, ir.Block) else None
    return holder.operation if holder and holder.name == LOOP else None


def bounds(loop: ir.Operation) -> tuple[int, int, int] | None:
    """(first index, step, trip count) of an `scf.for` where they are known."""
    lower, upper, step = (constant(value) for value in list(loop.operands)[:3])
    if lower is None or upper is None or step is None:
        return None
    return lower, step, max(-(-(upper - lower) // step), 0)


def inside(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops in the regions of `op`, and in theirs."""
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                yield from inside(child.operation)
