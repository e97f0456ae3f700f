"""Reductions of plain integers over axes."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.dialect import IntegerReduceOp, IntMaxOp, IntMinOp, IntProdOp, IntSumOp
from qdialect.dialect.type_constraints import element_of
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.axes import OverAxes
from qdialect.lowering.kernels.reduction import Fold
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.lanes import TILE_LANES


def _fold(op_class: type[IntegerReduceOp], element: str) -> Fold:
    low = -(2 ** (int(element[1:]) - 1))
    folds: dict[type[IntegerReduceOp], tuple[str, int]] = {
        IntSumOp: ("arith.addi", 0),
        IntProdOp: ("arith.muli", 1),
        IntMaxOp: ("arith.maxsi", low),
        IntMinOp: ("arith.minsi", -1 - low),
    }
    name, start = folds[op_class]

    def join(body: Body, total: Value, value: Value) -> Value:
        return body.binary(name, total, value)

    return Fold(element, start, lambda body, total, values: join(body, total, values[0]), join)


def _total(_: Body, total: Value, __: Sequence[Value]) -> Value:
    return total


@lowers(IntSumOp, IntProdOp, IntMaxOp, IntMinOp)
def _reduce(lowering: GraphLowering, op: IntegerReduceOp) -> None:
    over = OverAxes(op.input, op.output, op.axes, op.keep_dims)
    fold = _fold(type(op), element_of(op.input.type))
    over.emit(lowering, Kernel(lowering.program), fold, _total, TILE_LANES, op.operation.name)
