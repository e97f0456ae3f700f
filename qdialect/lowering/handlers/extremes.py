"""The largest or smallest quantized value over axes."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.dialect import ReduceMaxOp, ReduceMinOp
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.axes import OverAxes
from qdialect.lowering.kernels.folds import MAX, MIN
from qdialect.lowering.kernels.reduction import Fold
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.scalar_body import Body, Value

_LANES = 64


@lowers(ReduceMaxOp, takes_arrays=True)
def _reduce_max(lowering: GraphLowering, op: ReduceMaxOp) -> None:
    _lower(lowering, op, MAX)


@lowers(ReduceMinOp, takes_arrays=True)
def _reduce_min(lowering: GraphLowering, op: ReduceMinOp) -> None:
    _lower(lowering, op, MIN)


def _lower(lowering: GraphLowering, op: ReduceMaxOp | ReduceMinOp, fold: Fold) -> None:
    def finish(_: Body, acc: Value, __: Sequence[Value]) -> Value:
        return acc

    over = OverAxes(op.input, op.output, op.axes, op.keep_dims)
    over.emit(lowering, Kernel(lowering.program), fold, finish, _LANES, op.operation.name)
