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
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.ir.strides import row_major
from qdialect.lowering.qnn_to_linalg.conversions.range import ends_of, lower_ends
from qdialect.lowering.qnn_to_linalg.conversions.reduction import OverAxes
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand
from qdialect.lowering.qnn_to_linalg.kernels.reduction import (
    F32_PRODUCTS,
    F32_ROUNDED_PRODUCTS,
    Finish,
    Fold,
    Reduced,
    Reduction,
    emit_reduction,
)
from qdialect.lowering.qnn_to_linalg.program.operands import required_constant
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
    before, after = shape_of(op.data.type), shape_of(op.output.type)
    data, matrix, output = _operand(lowering, op.data), _operand(lowering, op.matrix), _result(lowering, op)
    extras, finish = _epilogue(lowering, op, slice(None), len(before))
    matrices = (0,) * (len(data.strides) - len(matrix.strides)) + matrix.strides[:-2]
    kernel = Kernel(lowering.program)
    reduction = Reduction(
        (*before[:-1], after[-1]),
        (before[-1],),
        [
            Reduced(_along(matrix, (*matrices, 0, matrix.strides[-1])), matrix.strides[-2:-1]),
            Reduced(_along(data, (*data.strides[:-1], 0)), data.strides[-1:]),
        ],
        extras,
        output,
        _products(op),
        finish,
        lowering.program.strategy.f32_lanes,
        _rows(lowering),
    )
    emit_reduction(kernel, reduction)
    lowering.program.call(kernel, op.operation.name, math.prod((*reduction.kept, *reduction.reduced)))


@lowers(F32Conv2DOp)
def _conv2d(lowering: GraphLowering, op: F32Conv2DOp) -> None:
    """Groups are reductions of their own; those of one channel are one, along the channels."""
    weight = required_constant("weight", op.weight)
    data, output = _operand(lowering, op.data), _result(lowering, op)
    channels, rows, columns, depth = weight.shape
    is_depthwise = depth == 1 and channels == op.groups
    groups = 1 if is_depthwise else op.groups
    across = channels // groups
    batch, height, width, _ = shape_of(op.output.type)
    image, row, pixel, _ = data.strides
    (y, x), (down, right) = op.strides, op.dilation
    for group in range(groups):
        taps = np.ascontiguousarray(weight[group * across : (group + 1) * across].transpose(1, 2, 3, 0))
        source = MapOperand(data.source, (image, y * row, x * pixel, int(is_depthwise)), data.offset + group * depth)
        extras, finish = _epilogue(lowering, op, slice(group * across, (group + 1) * across), 4)
        kernel = Kernel(lowering.program)
        reduction = Reduction(
            (batch, height, width, across),
            (rows, columns, depth),
            [
                Reduced(MapOperand(taps, (0, 0, 0, 1)), (columns * depth * across, depth * across, across)),
                Reduced(source, (down * row, right * pixel, 1)),
            ],
            extras,
            MapOperand(output.source, output.strides, output.offset + group * across),
            _products(op),
            finish,
            lowering.program.strategy.f32_lanes,
            _rows(lowering),
        )
        emit_reduction(kernel, reduction)
        lowering.program.call(kernel, op.operation.name, math.prod((*reduction.kept, *reduction.reduced)))


def _rows(lowering: GraphLowering) -> int:
    return _YMM_ROWS if lowering.program.strategy.lanes == _YMM else _ROWS


def _products(op: F32MatmulOp | F32Conv2DOp) -> Fold:
    return F32_ROUNDED_PRODUCTS if op.rounded_products else F32_PRODUCTS


def _operand(lowering: GraphLowering, value: ir.Value) -> MapOperand:
    """A tensor where it is stored, a constant where it lies."""
    shape, array = shape_of(value.type), constant_value(value)
    if array is not None:
        return MapOperand(array, row_major(shape))
    slot = lowering.slot(value)
    return MapOperand(slot, dim_strides(shape, slot.storage), slot.storage.origin)


def _result(lowering: GraphLowering, op: F32MatmulOp | F32Conv2DOp) -> MapOperand:
    slot = lowering.product(op)
    return MapOperand(slot, dim_strides(shape_of(op.output.type), slot.storage), slot.storage.origin)


def _epilogue(
    lowering: GraphLowering, op: F32MatmulOp | F32Conv2DOp, channels: slice, rank: int
) -> tuple[list[MapOperand], Finish]:
    """What is computed of the sums of `channels`, and the constants that it takes."""
    found = lowering.epilogue(op)
    if found is None:
        return [], _total
    strides = (*(0,) * (rank - 1), 1)
    extras = [MapOperand(np.ascontiguousarray(array[channels]), strides) for array in found.arrays()]
    return extras, found.emit


def _along(operand: MapOperand, strides: tuple[int, ...]) -> MapOperand:
    return MapOperand(operand.source, strides, operand.offset)
