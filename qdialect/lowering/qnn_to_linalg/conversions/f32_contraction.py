"""Reductions and contractions of f32 values: sums that run along vectors of results, in the order of the terms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qdialect.arithmetic.float32.machine import partial_sums
from qdialect.dialect import (
    F32Conv2DOp,
    F32ExtremeOp,
    F32MatmulOp,
    F32MaxOp,
    F32MinOp,
    F32ProdOp,
    F32ReduceOp,
    F32SumOp,
)
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.qnn_to_linalg.conversions.range import ends_of, lower_ends
from qdialect.lowering.qnn_to_linalg.conversions.reduced_products import ReducedProducts, operand_of
from qdialect.lowering.qnn_to_linalg.conversions.reduction import OverAxes
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand
from qdialect.lowering.qnn_to_linalg.kernels.reduction import (
    F32_PRODUCTS,
    F32_ROUNDED_PRODUCTS,
    Finish,
    Fold,
)
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

_ROWS, _YMM_ROWS = 8, 6
"""Of a tile of products; with 256 bits 16 registers hold the sums of six rows of two vectors, and three operands."""
_YMM = 8
_CHAINS = 4
"""Vectors of results that hide each other's latency."""
_FEW_LANES, _MANY_LANES = 32, 64
_LONG_ROW = 8 * _MANY_LANES
"""From here on joining more accumulators takes less than what waits for fewer."""


def _add(body: Body, total: Value, value: Value) -> Value:
    return body.add(total, value)


def _times(body: Body, total: Value, value: Value) -> Value:
    return body.multiply(total, value)


def _extreme(op: str, start: float) -> Fold:
    def join(body: Body, total: Value, value: Value) -> Value:
        return body.binary(op, total, value)

    return Fold("f32", start, lambda body, total, values: join(body, total, values[0]), join)


_FOLDS: dict[type[F32ReduceOp], Fold] = {
    F32SumOp: Fold("f32", 0.0, lambda body, total, values: _add(body, total, values[0]), _add, is_ordered=True),
    F32ProdOp: Fold("f32", 1.0, lambda body, total, values: _times(body, total, values[0]), _times, is_ordered=True),
    F32MaxOp: _extreme("arith.maximumf", -math.inf),
    F32MinOp: _extreme("arith.minimumf", math.inf),
}


def _total(_: Body, total: Value, __: Sequence[Value]) -> Value:
    return total


def _extreme_bits(op: str) -> Fold:
    def emit(body: Body, total: Value, values: Sequence[Value]) -> Value:
        return body.binary(op, total, body.cast("arith.bitcast", values[0], "i32"))

    return Fold("i32", 0, emit, lambda body, total, value: body.binary(op, total, value))


def _largest(body: Body, total: Value, _: Sequence[Value]) -> Value:
    return body.cast("arith.bitcast", total, "f32")


def _smallest(body: Body, total: Value, _: Sequence[Value]) -> Value:
    """Zero, where no number has a sign."""
    return body.cast("arith.bitcast", body.binary("arith.minsi", total, body.constant(0, "i32")), "f32")


_FROM_ZERO: dict[type[F32ReduceOp], tuple[Fold, Finish]] = {
    F32MaxOp: (_extreme_bits("arith.maxsi"), _largest),
    F32MinOp: (_extreme_bits("arith.maxui"), _smallest),
}
"""Of extremes from zero: one instruction for a vector, which has no case for a NaN or the sign of a zero."""


def _without_nan(op: F32ExtremeOp, fold: Fold) -> Fold:
    """A NaN counts as zero, and so may what lies on the other side of it from there: that is one instruction."""
    beyond = "ogt" if isinstance(op, F32MaxOp) else "olt"

    def emit(body: Body, total: Value, values: Sequence[Value]) -> Value:
        value, zero = values[0], body.constant(0.0, "f32")
        counts = body.compare(beyond, value, zero) if op.from_zero else body.compare("oeq", value, value)
        return fold.emit(body, total, [body.select(counts, value, zero)])

    return replace(fold, emit=emit)


def _reduce(lowering: GraphLowering, op: F32ReduceOp) -> None:
    ends = ends_of(op)
    if ends is not None and not lowering.is_of_rows(ends):
        lower_ends(lowering, op, ends, _lanes(lowering, op))
        return
    is_from_zero = isinstance(op, F32ExtremeOp) and op.from_zero
    fold, finish = _FROM_ZERO[type(op)] if is_from_zero else (_FOLDS[type(op)], _total)
    if isinstance(op, F32ExtremeOp) and op.nan_as_zero:
        fold = _without_nan(op, fold)
    over, fold = OverAxes(op.input, op.output, op.axes, op.keep_dims), replace(fold, lanes=_lanes(lowering, op))
    over.emit(lowering, Kernel(lowering.program), fold, finish, _width(lowering, op), op.operation.name)


def _width(lowering: GraphLowering, op: F32ReduceOp) -> int:
    """Lanes of a tile along kept channels: several vectors where few rows are kept, for each waits for its own sum."""
    shape = shape_of(op.input.type)
    if len(shape) - 1 in op.axes:
        return TILE_LANES
    rows = math.prod(extent for axis, extent in enumerate(shape[:-1]) if axis not in op.axes)
    return max(TILE_LANES, lowering.program.strategy.lanes * (_CHAINS // rows))


def _lanes(lowering: GraphLowering, op: F32ReduceOp) -> int:
    """How many accumulators a row has."""
    if isinstance(op, F32ProdOp):
        return 1
    return op.partial_sums if isinstance(op, F32SumOp) else _lanes_of_extreme(lowering, op)


def _lanes_of_extreme(lowering: GraphLowering, op: F32ReduceOp) -> int:
    """A maximum is the same in any order: the more accumulators, the fewer vectors wait for each other."""
    shape = shape_of(op.input.type)
    strides = dim_strides(shape, lowering.slot(op.input).storage)
    row = 1
    for axis in reversed(op.axes):
        # What lies side by side with the axes behind it is one row with them.
        row *= shape[axis] if strides[axis] == row or shape[axis] == 1 else 1
    if row < 2 * _FEW_LANES:
        return partial_sums(shape, op.axes)
    is_long = row >= 2 * _MANY_LANES and math.prod(shape[axis] for axis in op.axes) >= _LONG_ROW
    return _MANY_LANES if is_long else _FEW_LANES


for _op_class in _FOLDS:
    lowers(_op_class)(_reduce)


@lowers(F32MatmulOp)
def _matmul(lowering: GraphLowering, op: F32MatmulOp) -> None:
    data, matrix, output = operand_of(lowering, op.data), operand_of(lowering, op.matrix), lowering.product(op)
    _products(lowering, op).emit_matrices(lowering, op, data, matrix, output)


@lowers(F32Conv2DOp)
def _conv2d(lowering: GraphLowering, op: F32Conv2DOp) -> None:
    data, output = operand_of(lowering, op.data), lowering.product(op)
    _products(lowering, op).emit_convolution(lowering, op, data, output)


def _products(lowering: GraphLowering, op: F32MatmulOp | F32Conv2DOp) -> ReducedProducts:
    found, rank, strategy = lowering.epilogue(op), len(shape_of(op.output.type)), lowering.program.strategy

    def epilogue(channels: slice) -> tuple[list[MapOperand], Finish]:
        if found is None:
            return [], _total
        strides = (*(0,) * (rank - 1), 1)
        return [MapOperand(np.ascontiguousarray(array[channels]), strides) for array in found.arrays()], found.emit

    fold = F32_ROUNDED_PRODUCTS if op.rounded_products else F32_PRODUCTS
    return ReducedProducts(fold, epilogue, strategy.f32_lanes, _YMM_ROWS if strategy.lanes == _YMM else _ROWS)
