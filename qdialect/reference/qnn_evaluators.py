"""Evaluates the separate `qnn` ops: each passes the op's attributes to the arithmetic that defines its meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect import arithmetic
from qdialect import dialect as qnn
from qdialect.arithmetic import Division, IntArray, QuantizedArray, QuantParams, Table, elementwise, softmax_tables
from qdialect.arithmetic.choices import Interpolation, ScatterReduction, SoftmaxArithmetic
from qdialect.arithmetic.convolution import windows
from qdialect.arithmetic.fixed_point_functions import (
    fixed_point_table,
    inverse_roots,
    layer_normalized,
    row_mean,
    row_variance,
)
from qdialect.arithmetic.machine import NUMPY
from qdialect.arithmetic.multipliers import mean_parameters
from qdialect.arithmetic.ranges import range_scale, range_zero_point
from qdialect.arithmetic.resize import Taps
from qdialect.arithmetic.softmax_tables import SoftmaxTables, float_share, ort_share, reciprocal, share_shift
from qdialect.dialect import DynamicGatherOp, DynamicScatterOp, ResizeBilinearOp
from qdialect.dialect.constants import elements_array
from qdialect.dialect.i16_ops import FixedPointFunctionOp, I16LayerNormOp
from qdialect.dialect.op_base import for_each_op
from qdialect.dialect.type_constraints import dtype_of, range_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.reference.evaluators import Array, Arrays, evaluates, last_axis, nearest_rows


@evaluates(qnn.AvgPool2DOp)
def _avg_pool2d(op: qnn.AvgPool2DOp, operands: Arrays) -> Array:
    """Mean of the raw quantized values of each window: input and result have equal parameters, as f32 values do.

    `half_away_centered` is TOSA's AVG_POOL2D, which multiplies t, the sum of n quantized values less their zero point,
    by a reciprocal: ``(t * q + 2^(29 + k)) >> (30 + k)`` with k = ceil(log2 n) and q = floor((2^30 + 1) * 2^k / n).  As
    2^k >= n, q * n lies above 2^(30 + k), by 2^k at most: the product is t / n * (1 + d) with 0 < d <= 2^-30.  That
    moves ties away from zero and, for |t| <= 255 * n and n <= 2^20, nothing else: other sums are 1 / 2n from a tie.
    """
    center = op.zero_point if op.division is Division.HALF_AWAY_CENTERED else 0
    total = _windows(op, operands[0].astype(np.int64), op.zero_point if op.count_include_pad else 0).sum(axis=0)
    inside = np.ones((1, *operands[0].shape[1:3], 1), dtype=np.int64)
    count = _windows(op, inside, int(op.count_include_pad)).sum(axis=0)
    total -= center * count
    nudge = 0 if op.division is Division.TRUNCATE else count // 2
    magnitude = (np.abs(total) + nudge) // count
    return np.clip(np.sign(total) * magnitude + center, op.output_min, op.output_max)


@evaluates(qnn.MaxPool2DOp)
def _max_pool2d(op: qnn.MaxPool2DOp, operands: Arrays) -> Array:
    """Padding does not count."""
    values = _windows(op, operands[0].astype(np.int64), int(np.iinfo(np.int64).min))
    return np.clip(values.max(axis=0), op.output_min, op.output_max)


def _windows(op: qnn.AvgPool2DOp | qnn.MaxPool2DOp, data: IntArray, pad_value: int) -> IntArray:
    """[KH * KW, N, OH, OW, C]: for each kernel position, the elements it meets."""
    top, left, bottom, right = op.padding
    padded = np.pad(data, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=pad_value)
    return np.stack([window for _, window in windows(padded, op.kernel, shape_of(op.output.type)[1:3], op.strides)])


def over_axes(
    data: QuantizedArray,
    axes: Sequence[int],
    keep_dims: bool,
    source: QuantParams,
    output: QuantParams,
    bounds: tuple[int, int],
    rounding: arithmetic.Rounding,
    multiplier: arithmetic.Multiplier,
    *,
    is_mean: bool = True,
) -> IntArray:
    """Mean or sum over `axes`, rescaled and clamped to `bounds`, int64.

    The sum of (x - z_x) times s_x / s_y, or with n elements per mean times s_x / (n * s_y), see `mean_parameters`, plus
    z_y.  With `fixed32_double` and `f64` this is TFLite's reference MEAN, and SUM of unsigned quantized values.
    """
    total = (data.astype(np.int64) - source.zero_point).sum(axis=tuple(axes), keepdims=keep_dims)
    real = arithmetic.real_multiplier(source.scale, [1.0], output.scale, multiplier)
    count = math.prod(data.shape[axis] for axis in axes)
    params = mean_parameters(rounding, real, count) if is_mean else arithmetic.requantize_parameters(rounding, real)
    return arithmetic.requantize(total, params, output.zero_point, *bounds, rounding)


def softmax_fixed(data: QuantizedArray, axis: int, tables: SoftmaxTables) -> IntArray:
    """TFLite SOFTMAX (reference softmax.h): int64 in the dtype's range, of scale 1/256 and the minimum as zero point.

    y = round(e_i * (1 / sum of e)) in Q0.8 plus the minimum, saturated.  Exact for rows whose sum stays below
    4096 times the largest exponential, the kernel's own limit.
    """
    info = np.iinfo(data.dtype.name)
    values = data.astype(np.int64)
    distance = values.max(axis=axis, keepdims=True) - values
    total = tables.addends[distance].sum(axis=axis, keepdims=True, dtype=np.int32)
    shares = softmax_tables.share(
        NUMPY, tables.exponentials[distance], reciprocal(NUMPY, total), share_shift(NUMPY, total)
    )
    return shares + info.min


def softmax_float(
    data: QuantizedArray,
    axis: int,
    zero_point: int,
    entries: NDArray[np.float32],
    share: Callable[[Array, Array], Array],
) -> NDArray[np.float64]:
    """half_even(share(e_i, sum)) + z_y in float32, with the entry e_i of the distance from the row's maximum.

    The sum runs along `axis` in order, in float32: the order is part of the definition.
    """
    values = data.astype(np.int64)
    terms = entries[values.max(axis=axis, keepdims=True) - values]
    total = np.take(np.add.accumulate(terms, axis=axis), [-1], axis=axis)
    with np.errstate(over="ignore"):
        return np.rint(share(terms, total)).astype(np.float64) + zero_point


@evaluates(qnn.ConstantOp)
def _constant(op: qnn.ConstantOp, _: Arrays) -> Array:
    type_ = op.output.type
    return elements_array(ir.DenseElementsAttr(op.value), dtype_of(type_), shape_of(type_))


@evaluates(qnn.QuantizeOp)
def _quantize(op: qnn.QuantizeOp, operands: Arrays) -> Array:
    how = (op.rounding, op.scaling, op.nan)
    return arithmetic.quantize_array(operands[0], op.scales, op.zero_points, op.axis, dtype_of(op.output.type), *how)


evaluates(qnn.DequantizeOp)(lambda op, x: arithmetic.dequantize_array(x[0], op.scales, op.zero_points, op.axis))


@evaluates(qnn.RequantizeOp)
def _requantize(op: qnn.RequantizeOp, operands: Arrays) -> Array:
    f32 = arithmetic.real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
    params = arithmetic.requantize_parameters(op.rounding, f32)
    bounds, zero_points = range_of(op.output.type), np.array(op.input_zero_points, dtype=np.int64)

    def by_channel(values: Array) -> Array:
        return arithmetic.requantize(
            values.astype(np.int64) - zero_points, params, op.output_zero_point, *bounds, op.rounding
        )

    values = operands[0]
    return last_axis(values, op.axis, by_channel) if values.ndim else by_channel(values).reshape(())


evaluates(qnn.ClipOp)(lambda op, x: np.clip(x[0], op.min, op.max))
evaluates(qnn.AddOp)(
    lambda op, x: elementwise.add(x[0], x[1], op.quantization, op.arithmetic, op.rounding, op.multiplier)
)
evaluates(qnn.MulOp)(lambda op, x: elementwise.mul(x[0], x[1], op.quantization, op.rounding, op.multiplier))


@evaluates(qnn.ConcatOp)
def _concat(op: qnn.ConcatOp, operands: Arrays) -> Array:
    pairs = zip(op.input_scales, op.input_zero_points, strict=True)
    params = [QuantParams(scale, zero_point) for scale, zero_point in pairs]
    bounds = range_of(op.output.type)
    return elementwise.concat(operands, params, op.axis, op.output_params, bounds, op.rounding, op.multiplier)


@evaluates(qnn.MeanOp, qnn.SumOp)
def _over_axes(op: qnn.MeanOp | qnn.SumOp, operands: Arrays) -> Array:
    how = op.input_params, op.output_params, range_of(op.output.type), op.rounding, op.multiplier
    return over_axes(operands[0], op.axes, op.keep_dims, *how, is_mean=isinstance(op, qnn.MeanOp))


@evaluates(qnn.SoftmaxOp)
def _softmax(op: qnn.SoftmaxOp, operands: Arrays) -> Array:
    if op.arithmetic is SoftmaxArithmetic.TFLITE_FIXED:
        return softmax_fixed(operands[0], op.axis, softmax_tables.softmax_tables(op.input_scale, op.beta))
    point, bounds = op.output_zero_point, range_of(op.output.type)
    if op.arithmetic is SoftmaxArithmetic.ORT_TABLE:
        entries = softmax_tables.ort_entries(op.input_scale, op.beta, operands[0].shape[op.axis])
        factor = softmax_tables.ort_factor(op.output_scale)
        largest, beyond = softmax_tables.ort_largest(entries, factor), softmax_tables.ort_beyond(point, *bounds) - point
        share = partial(ort_share, NUMPY, factor=factor, largest=largest, beyond=beyond)
    else:
        entries = softmax_tables.float_entries(op.input_scale, op.beta)
        share = partial(float_share, NUMPY, output_scale=np.float32(op.output_scale))
    return np.clip(softmax_float(operands[0], op.axis, point, entries, share), *bounds)


# NumPy pads no scalar.
evaluates(qnn.PadOp)(
    lambda op, x: np.pad(x[0], np.array([op.low, op.high]).T, constant_values=op.value) if x[0].ndim else x[0]
)
evaluates(qnn.ReshapeOp)(lambda op, x: x[0].reshape(op.shape))
evaluates(qnn.GatherOp)(lambda op, x: np.take(x[0], op.indices, axis=op.axis))
evaluates(qnn.BroadcastOp)(lambda op, x: np.broadcast_to(x[0], op.shape))
evaluates(qnn.TransposeOp)(lambda op, x: x[0].transpose(op.permutation).copy())


@evaluates(qnn.SliceOp)
def _slice(op: qnn.SliceOp, operands: Arrays) -> Array:
    dimensions = zip(op.begin, op.size, op.strides, strict=True)
    return operands[0][tuple(slice(start, start + (n - 1) * step + 1, step) for start, n, step in dimensions)].copy()


def look_up(table: Table, values: Array, dtype: np.dtype[np.generic]) -> Array:
    """``table[bits(quantized values)]`` as quantized values of the 8-bit `dtype`."""
    return table[values.astype(np.int64) & 0xFF].view(dtype)


evaluates(qnn.LutOp)(lambda op, x: look_up(op.table, x[0], dtype_of(op.output.type)))
for_each_op(qnn.UnaryOp)(
    lambda op_class: evaluates(op_class)(lambda op, x: look_up(op.to_table(), x[0], dtype_of(op.output.type)))
)


evaluates(qnn.SubOp)(
    lambda op, x: elementwise.sub(x[0], x[1], op.quantization, op.arithmetic, op.rounding, op.multiplier)
)
evaluates(qnn.MaximumOp)(lambda op, x: elementwise.extreme(x[0], x[1], op.quantization, is_max=True))
evaluates(qnn.MinimumOp)(lambda op, x: elementwise.extreme(x[0], x[1], op.quantization, is_max=False))


@evaluates(qnn.SquaredDifferenceOp)
def _squared_difference(op: qnn.SquaredDifferenceOp, operands: Arrays) -> Array:
    return elementwise.squared_difference(op.quantization.params).of(operands[0], operands[1], op.quantization)


@evaluates(qnn.PreluOp)
def _prelu(op: qnn.PreluOp, operands: Arrays) -> Array:
    if op.arithmetic is arithmetic.PairArithmetic.FLOAT:
        return elementwise.f32_pair(operands[0], operands[1], op.quantization, elementwise.with_slope)
    return elementwise.prelu(op.quantization.params).of(operands[0], operands[1], op.quantization)


@evaluates(qnn.DivOp)
def _div(op: qnn.DivOp, operands: Arrays) -> Array:
    if op.arithmetic is arithmetic.PairArithmetic.FLOAT:
        return elementwise.f32_pair(operands[0], operands[1], op.quantization, elementwise.quotient)
    return elementwise.div_fixed(operands[0], operands[1], op.quantization)


evaluates(qnn.RangeScaleOp)(lambda _, x: range_scale(*x))
evaluates(qnn.RangeZeroPointOp)(lambda _, x: range_zero_point(*x))


@evaluates(qnn.InterpolatedLutOp)
def _interpolated_lut(op: qnn.InterpolatedLutOp, operands: Arrays) -> Array:
    bases, slopes = (np.array(numbers, dtype=np.int64) for numbers in (op.bases, op.slopes))
    x = np.clip(operands[0].astype(np.int64), 0, (len(bases) << op.fraction) - 1)
    index = x >> op.fraction
    # The interpreter's conversion to the result's type keeps the low bits.
    return (bases[index] << op.fraction) + (x - (index << op.fraction)) * slopes[index]


evaluates(FixedPointFunctionOp)(lambda op, x: fixed_point_table(op.function, op.integer_bits)[x[0].astype(int) + 2**15])


@evaluates(I16LayerNormOp)
def _i16_layer_norm(op: I16LayerNormOp, operands: Arrays) -> Array:
    data, weight, bias = (operand.astype(np.int64) for operand in operands)
    count = data.shape[-1]
    mean = row_mean(NUMPY, data.sum(axis=-1, keepdims=True), count).astype(np.int64)
    variance = row_variance(NUMPY, (data**2).sum(axis=-1, keepdims=True), mean, count, op.variance_guard)
    return layer_normalized(NUMPY, data, mean, *inverse_roots(variance), weight, bias, op.scale)


@evaluates(DynamicGatherOp)
def _gather(op: DynamicGatherOp, operands: Arrays) -> Array:
    data, indices = operands
    return np.take(data, nearest_rows(indices, data.shape[op.axis]), axis=op.axis)


@evaluates(DynamicScatterOp)
def _scatter(op: DynamicScatterOp, operands: Arrays) -> Array:
    data, indices, updates = operands
    result, reduce = data.copy(), _REDUCTIONS[op.reduction]
    # One after another: of equal indices the last one stands.
    with np.errstate(all="ignore"):
        for row, update in zip(nearest_rows(indices, len(data)), updates, strict=True):
            result[row] = reduce(result[row], update)
    return result


_REDUCTIONS: Mapping[ScatterReduction, Callable[[Array, Array], Array]] = {
    ScatterReduction.NONE: lambda _, update: update,
    ScatterReduction.ADD: np.add,
    ScatterReduction.MUL: np.multiply,
    ScatterReduction.MIN: np.minimum,
    ScatterReduction.MAX: np.maximum,
    ScatterReduction.LESS: lambda before, update: np.where(before < update, before, update),
    ScatterReduction.GREATER: lambda before, update: np.where(before > update, before, update),
}


Image = NDArray[Any]
_F32 = np.float32
_HALF = _F32(0.5)


def resize_bilinear(data: Image, rows: Taps, columns: Taps, arithmetic: Interpolation) -> Image:
    """An image [N, H, W, C] interpolated from `rows` and `columns`.

    ``tflite_fixed``: ``half_away(sum * 2^-20)``; ``xnnpack_fixed``: ``floor(sum * 2^-22 + 1/2)``; ``tflite_float``:
    terms ``(v * row) * column``, columns outermost, quantized values ``trunc(sum + 0.5)``; ``onnx_float``: terms
    ``(column * row) * v``, rows outermost, quantized values ``trunc(sum)``.
    """
    vertical = ((rows.low, rows.low_weight), (rows.high, rows.high_weight))
    horizontal = ((columns.low, columns.low_weight), (columns.high, columns.high_weight))
    pairs = [(row, column) for row in vertical for column in horizontal]
    if arithmetic is not Interpolation.ONNX_FLOAT:
        pairs = [(row, column) for column in horizontal for row in vertical]
    elements = data.astype(np.int64 if rows.low_weight.dtype == np.int32 else _F32)
    total: Image | None = None
    with np.errstate(over="ignore", invalid="ignore"):
        for (row, row_weight), (column, column_weight) in pairs:
            values = np.take(np.take(elements, row, axis=1), column, axis=2)
            by_row, by_column = row_weight[:, None, None], column_weight[:, None]
            in_order = arithmetic is not Interpolation.ONNX_FLOAT
            term = values * by_row * by_column if in_order else by_column * by_row * values
            total = term if total is None else total + term
    assert total is not None
    if arithmetic is Interpolation.TFLITE_FIXED:
        return (total + (1 << 19) + (total >> 63)) >> 20
    if arithmetic is Interpolation.XNNPACK_FIXED:
        return (total + (1 << 21)) >> 22
    if data.dtype == _F32:
        return total
    rounding = _HALF if arithmetic is Interpolation.TFLITE_FLOAT else _F32(0)
    info = np.iinfo(data.dtype.name)
    return np.clip(np.trunc(total + rounding), info.min, info.max)


evaluates(ResizeBilinearOp)(lambda op, x: resize_bilinear(x[0], *op.taps, Interpolation(op.arithmetic)))
