"""`qnn-split-extremes`: the extreme of a tensor is that of its rows' extremes, which the kernel of the rows finds."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from qdialect.dialect import F32MaxOp, F32MinOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.pattern import GraphPass, MatchFailure, Replacement, producer, rebuilt, require
from qdialect.passes.registry import register

_LEAST_COLUMNS = 256
"""Of rows: joining the lanes of a shorter one takes longer than reading it once more."""


class SplitExtreme(Replacement[int]):
    """``extreme(x)`` over several axes and the last becomes ``extreme(extreme(x) over the last)`` over all of them.

    An extreme is the same in any order.  The rows must come from an element-wise op, whose kernel finds theirs.
    """

    roots = (F32MaxOp.OPERATION_NAME, F32MinOp.OPERATION_NAME)

    def check(self, op: F32MaxOp | F32MinOp) -> int | None:
        shape, last = shape_of(op.input.type), op.axes[-1]
        if last != len(shape) - 1 or len(op.axes) == 1:
            return None
        rows = prod(shape[axis] for axis in op.axes[:-1])
        require(rows > 1, "must have several rows, but has one")
        is_long = shape[last] >= _LEAST_COLUMNS
        require(is_long, f"must have rows of at least {_LEAST_COLUMNS}, but has {rows} of {shape[last]}")
        found = producer(op.input)
        if found is None or not found.operation.name.startswith(("arith.", "math.")) or not found.operation.operands:
            raise MatchFailure("must read what an element-wise op computes")
        return last

    def emit(self, op: F32MaxOp | F32MinOp, match: int) -> ir.Value:
        rows = rebuilt(op, axes=(match,), keep_dims=True)
        return rebuilt(op, rows.output).output


@register
class SplitExtremesPass(GraphPass):
    """Take the extremes of tensors that element-wise ops compute from the extremes of their rows."""

    name: ClassVar[str] = "qnn-split-extremes"
    rewrites = (SplitExtreme,)
