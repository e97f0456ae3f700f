"""Plans contractions of float32 data and i8 weights: the data are quantized when the network runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic import FloatRounding
from qdialect.arithmetic.block_weights import PackedWeights, pack_weights
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, Shape, require
from qdialect.frontends.building.op_builder import Arithmetic, OpBuilder
from qdialect.frontends.building.slices import Slice, take_slices
from qdialect.frontends.planning.block_weights import dynamic_block_product, takes_quantized_rows
from qdialect.frontends.planning.convolution import TransposedWindow, transposed_sums
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.contraction import adjoint_options, check_columns, transposed
from qdialect.frontends.tflite.operators.f32 import check_bias, clamped, finished, padded_image
from qdialect.frontends.tflite.operators.registry import Building, Emitter, imports_hybrid
from qdialect.ir._mlir import ir

# A fully connected layer quantizes each row by itself, a convolution each image, or each pixel where XNNPACK's delegate
# takes it as the product of a matrix.  Padding is zero, which a zero point stands for exactly and which every range
# holds, so it is added before.

_MAX_IMAGES = 64
"""That a convolution computes one after another."""
# What XNNPACK's delegate takes, and how many weights its packing adds up at a time.
_DELEGATED_BLOCK, _AT_ONCE_PACKED = 32, 16
_PARTS = (-1 << 16, -1 << 8, -1)
"""Where the bits end of each of the bfloat16 numbers that an f32 number is the sum of."""


def _i8_weights(weight: Tensor, rank: int, axis: int) -> Array:
    """The constant i8 weights, output channels first, which have scales for these and no zero points."""
    taps = checks.constant(weight, "weight")
    require(taps.ndim == rank, f"weight must have {rank} dimensions, but got {taps.ndim}")
    checks.check_scales(weight, "weight")
    fits = len(weight.scales) == 1 or weight.axis == axis
    require(fits, f"weight scales must lie along axis {axis}, but got {weight.axis}")
    require(not any(weight.zero_points), "i8 weight must have zero point 0")
    return np.moveaxis(taps, axis, 0)


def _packed(weight: Tensor, matrix: Array) -> PackedWeights | None:
    """Weights [N, K] that have few bits in the file."""
    if not weight.bits:
        return None
    scales = np.broadcast_to(np.array(weight.scales, np.float32)[:, np.newaxis], (len(matrix), 1))
    packed = pack_weights(matrix, scales, None, matrix.shape[1])
    return packed if packed is not None and takes_quantized_rows(packed) else None


def _dense(
    emitter: Emitter, rows: ir.Value, matrix: Array, weight: Tensor, bias: list[Tensor], *, is_asymmetric: bool
) -> ir.Value:
    """``bias + float32(sum) * (scale * weight_scale)`` of each row, by weights [N, K]."""
    row = quantizer_of(emitter, is_asymmetric=is_asymmetric)(emitter, rows, (1,), ())
    start = emitter.reshape(emitter.value(bias[0]), (len(matrix),)) if bias else None
    parts = (row.values, emitter.constant(matrix), row.scale, row.zero_point, start)
    return emitter.build(qnn.DynamicDenseOp, *parts, element="f32", weight_scales=weight.scales)


@imports_hybrid("FULLY_CONNECTED")
def _fully_connected(operator: Operator) -> Building:
    activation, is_asymmetric = checks.dense_options(operator)
    data, weight, *bias = checks.operands(operator, 2, 3)
    if weight.block_scales is not None:
        return (yield from _in_blocks(operator, activation, weight.block_scales))
    matrix = _i8_weights(weight, 2, 0)
    checks.f32_bounds(activation)
    channels, depth = matrix.shape
    check_bias(bias, channels)
    count, packed = math.prod(data.shape) // depth, _packed(weight, matrix)
    emitter = yield
    rows = emitter.reshape(emitter.value(data), (count, depth))
    if packed is None:
        total = _dense(emitter, rows, matrix, weight, bias, is_asymmetric=is_asymmetric)
        bias = []
    else:
        row = quantizer_of(emitter, is_asymmetric=is_asymmetric)(emitter, rows, (1,), ())
        total = dynamic_block_product(emitter, row.values, row.scale, row.zero_point, packed)
    return emitter.reshape(finished(emitter, total, bias, activation, (count, channels)), operator.outputs[0].shape)


def _in_blocks(operator: Operator, activation: int, scales: Array) -> Building:
    """``bias + s * (k * (z + 128) + sum of f32(c) * r)``, every step rounded, a fused product and sum for each block.

    Of a row s is the scale and z the zero point, of a block c the sum of ``(a + 128) * w`` and r the scale, rounded to
    bfloat16, and k minus the sum of ``w * r``, rounded for each 16 weights (XNNPACK's qd8-f32-qb4w with AVX-512 VNNI;
    its other kernels add in another order).  The first term is that of a block of its own, or of one for each of three
    bfloat16 numbers whose sum is k: products with the first two of them have 24 bits at most, and only the last rounds.
    Then all scales have 16 bits, which takes less where there are many.
    """
    data, weight, *bias = checks.operands(operator, 2, 3)
    matrix, block = checks.constant(weight, "weight"), weight.block
    channels, depth = matrix.shape
    checks.f32_bounds(activation)
    holds = block % _DELEGATED_BLOCK == 0
    require(holds, f"blocks of the weight must be multiples of {_DELEGATED_BLOCK}, but have {block} elements")
    require(bool(((scales > 0) & np.isfinite(scales)).all()), "scales of the weight must be positive and finite")
    rounded = scales.astype(ml_dtypes.bfloat16).astype(np.float32)
    first = np.zeros(channels, np.float32)
    for start in range(0, depth, _AT_ONCE_PACKED):
        total = matrix[:, start : start + _AT_ONCE_PACKED].sum(axis=1, dtype=np.int32)
        first -= total.astype(np.float32) * rounded[:, start // block]
    masks = _PARTS if depth // block > block // 2 + 2 else _PARTS[-1:]
    ends = [np.zeros_like(first), *((first.view(np.int32) & mask).view(np.float32) for mask in masks)]
    parts = [end - start for start, end in pairwise(ends)]
    added = np.zeros((channels, len(parts) * block), np.int8)
    added[:, ::block] = 1
    packed = pack_weights(np.hstack([added, matrix]), np.column_stack([*parts, rounded]), None, block)
    require(packed is not None and takes_quantized_rows(packed), f"blocks of {block} elements are not supported")
    assert packed is not None
    check_bias(bias, channels)
    emitter, count = (yield), math.prod(data.shape) // depth
    row = delegated(emitter, emitter.reshape(emitter.value(data), (count, depth)), (1,))
    points = emitter.broadcast(row.zero_point, (count, len(parts) * block))
    rows = emitter.concatenate([points, row.values], 1)
    offset = emitter.constant(np.ones(1, np.float32)), emitter.constant(np.array([_LOWEST], np.int8))
    total = dynamic_block_product(emitter, rows, *offset, packed)
    total = emitter.f32("mulf", total, row.scale)
    return emitter.reshape(finished(emitter, total, bias, activation, (count, channels)), operator.outputs[0].shape)


@imports_hybrid("CONV_2D", "DEPTHWISE_CONV_2D")
def _convolution(operator: Operator) -> Building:
    """Every image has a scale of its own, and a zero point unless all channels' weights have the same scale."""
    windows, axis = checks.window_options(operator), 3 if operator.kind == "DEPTHWISE_CONV_2D" else 0
    data, weight, *bias = checks.operands(operator, 2, 3)
    taps = _i8_weights(weight, 4, axis)
    if axis == 3:
        require(taps.shape[1] == 1, f"weight must have a first dimension of 1, but got {taps.shape[1]}")
        taps = np.moveaxis(taps, 1, 3)
    channels, depth = taps.shape[0], taps.shape[3]
    found, groups = len(weight.scales), data.shape[3] // max(depth, 1)
    is_single = len(set(weight.scales)) == 1 and axis == 0 and groups == 1
    require(
        is_single or found == channels, f"weight must have a scale for each of {channels} channels, but got {found}"
    )
    require(len(data.shape) == 4 and depth >= 1, "input must have 4 dimensions and the weight a depth")
    images = data.shape[0]
    require(images <= _MAX_IMAGES, f"input must have at most {_MAX_IMAGES} images, but got {images}")
    checks.f32_bounds(windows.activation)
    check_bias(bias, channels)
    window = (taps.shape[1], taps.shape[2])
    padding = windows.explicit(data.shape[1:3], window)
    how: dict[str, Any] = {"strides": windows.strides, "dilation": windows.dilation, "groups": groups}
    # Depthwise kernels and those of one weight scale multiply by the product of both scales.
    how["scale_last"] = not (axis or is_single)

    def of_image(emitter: Emitter, image: ir.Value) -> ir.Value:
        padded, (top, left, bottom, right) = padded_image(emitter, image, padding), padding
        # The delegate leaves depthwise convolutions.
        found = (asymmetric if axis else quantizer_of(emitter, is_asymmetric=not is_single))(
            emitter, padded, (0, 1, 2, 3), ((0, 0), (top, bottom), (left, right), (0, 0))
        )
        parts = (found.values, emitter.constant(taps), found.scale, found.zero_point)
        total = emitter.build(qnn.DynamicConv2DOp, *parts, None, element="f32", weight_scales=weight.scales, **how)
        return finished(emitter, total, bias, windows.activation, shape_of(total.type), is_bounded=True)

    emitter = yield
    if emitter.is_delegated and axis == 0 and window == windows.strides == (1, 1) and groups == 1:
        # Each pixel is a row.
        rows = emitter.reshape(emitter.value(data), (math.prod(data.shape[:3]), depth))
        total = _dense(emitter, rows, taps.reshape(channels, depth), weight, bias, is_asymmetric=True)
        return emitter.reshape(clamped(emitter, total, windows.activation), (*data.shape[:3], channels))
    value = emitter.value(data)
    rest = [Slice(0, 1, extent) for extent in data.shape[1:]]
    parts = (take_slices(emitter, value, (Slice(index, 1, 1), *rest)) for index in range(images))
    results = [of_image(emitter, part) for part in parts]
    return results[0] if images == 1 else emitter.concatenate(results, 0)


@imports_hybrid("TRANSPOSE_CONV")
def _hybrid_transpose_conv(operator: Operator) -> Building:
    """``sum of (a - z) * w`` times both scales, in which every image has a scale and a zero point of its own.

    The sums are of whole numbers, as by XNNPACK's delegate, which adds the bias at once; LiteRT's own kernel scales,
    rounds and adds one product after the other.
    """
    wanted, weight, data, *bias = checks.operands(operator, 3, 4)
    taps, shape, how = _i8_weights(weight, 4, 0), operator.outputs[0].shape, checks.window_options(operator)
    ranks = len(data.shape), len(shape)
    require(ranks == (4, 4), f"input and output must have 4 dimensions, but got {ranks[0]} and {ranks[1]}")
    require(data.shape[3] == taps.shape[3], f"input must have {taps.shape[3]} channels, but got {data.shape[3]}")
    require(checks.integers(wanted, "output shape") == shape, f"output shape must be {list(shape)}")
    checks.f32_bounds(how.activation)
    check_bias(bias, taps.shape[0])
    before = how.explicit(shape[1:3], taps.shape[1:3])[:2]
    window = TransposedWindow(how.strides, how.dilation, before, shape[1:3])
    whole, factors = np.moveaxis(taps, (0, -1), (1, 0)), np.array(weight.scales, np.float32)
    images = data.shape[0]
    require(images <= _MAX_IMAGES, f"input must have at most {_MAX_IMAGES} images, but got {images}")

    emitter = yield
    # The delegate leaves outputs with pixels that no window reaches behind the others.
    extents = zip(data.shape[1:3], how.strides, taps.shape[1:3], shape[1:3], strict=True)
    is_delegated = emitter.is_delegated and all((n - 1) * step + k >= size for n, step, k, size in extents)
    image = (delegated if is_delegated else asymmetric)(emitter, emitter.value(data), (1, 2, 3))
    sums = [_whole_sums(emitter, image, index, whole, window) for index in range(images)]
    total = sums[0] if images == 1 else emitter.concatenate(sums, 0)
    if not is_delegated:
        total = emitter.f32("mulf", emitter.f32("mulf", total, emitter.constant(factors)), image.scale)
        return finished(emitter, total, bias, how.activation, shape)
    starts = [emitter.reshape(emitter.value(one), shape[-1:]) for one in bias] or [0.0]
    total = emitter.f32("fma", emitter.f32("mulf", total, image.scale), emitter.constant(factors), *starts)
    return clamped(emitter, total, how.activation)


def _whole_sums(
    emitter: OpBuilder, data: RunTimeQuantized, index: int, weight: Array, window: TransposedWindow
) -> ir.Value:
    """``sum of (a - z) * w`` of one image as f32 numbers, from i8 weights [I, O, H, W]."""
    rest = [Slice(0, 1, extent) for extent in shape_of(data.values.type)[1:]]
    values = take_slices(emitter, data.values, [Slice(index, 1, 1), *rest])
    point = take_slices(emitter, data.zero_point, [Slice(index, 1, 1), *[Slice(0, 1, 1)] * len(rest)])

    def from_point(value: ir.Value) -> ir.Value:
        # Its own inverse: the zeros around an image become the zero point, whose products are 0.
        return Arithmetic(emitter).op("arith.xori", value, emitter.broadcast(point, shape_of(value.type)))

    def convolve(emitter: OpBuilder, data: ir.Value, taps: Array, steps: Shape, _: Array | None) -> ir.Value:
        scale = emitter.constant(np.ones(1, np.float32))
        parts = (from_point(data), emitter.constant(taps), scale, emitter.reshape(point, (1,)), None)
        return emitter.build(qnn.DynamicConv2DOp, *parts, element="f32", weight_scales=(1.0,), dilation=steps)

    return transposed_sums(weight, window, convolve)(emitter, from_point(values))


# BATCH_MATMUL of float32 data and constant i8 matrices: each row is quantized when the network runs.

_MAX_MATRICES = 64


@imports_hybrid("BATCH_MATMUL")
def _batch_matmul(operator: Operator) -> Building:
    """``float32(sum) * (scale * weight_scale)`` of each row."""
    transpose_lhs, transpose_rhs, is_asymmetric = adjoint_options(operator)
    data, weight = checks.operands(operator, 2)
    checks.check_scales(weight, "right operand")
    require(not any(weight.zero_points), "right operand must have zero point 0")
    matrices = checks.constant(weight, "right operand")
    check_columns(weight, matrices.ndim, transpose_rhs)
    require(min(len(data.shape), matrices.ndim) >= 2, "operands must have at least 2 dimensions")
    # Output channels first.
    matrices = matrices if transpose_rhs else np.swapaxes(matrices, -1, -2)
    lhs = data.shape if not transpose_lhs else (*data.shape[:-2], data.shape[-1], data.shape[-2])
    depth, (channels, wanted) = lhs[-1], matrices.shape[-2:]
    require(depth == wanted, f"right operand must have {depth} rows, but got {wanted}")
    leading = matrices.shape[:-2]
    is_one = math.prod(leading) == 1
    fits = is_one or leading == lhs[:-2]
    require(fits, f"leading dimensions must be the same, but got {list(lhs[:-2])} and {list(leading)}")
    count = 1 if is_one else math.prod(leading)
    require(count <= _MAX_MATRICES, f"right operand must have at most {_MAX_MATRICES} matrices, but got {count}")
    flat, height = matrices.reshape(count, channels, depth), math.prod(lhs[:-1]) // count

    def of_matrix(emitter: Emitter, value: ir.Value, index: int) -> ir.Value:
        part = take_slices(emitter, value, (Slice(index * height, 1, height), Slice(0, 1, depth)))
        return _dense(emitter, part, np.ascontiguousarray(flat[index]), weight, [], is_asymmetric=is_asymmetric)

    emitter = yield
    holds = emitter.is_delegated or sum(extent > 1 for extent in leading) <= 1
    wanted = "right operand must have at most one leading dimension of more than 1 with profile 'tflite'"
    require(holds, f"{wanted}, whose kernel takes the scales of other rows, but got {list(leading)}")
    value = emitter.value(data)
    value = emitter.reshape(transposed(emitter, value) if transpose_lhs else value, (count * height, depth))
    results = [of_matrix(emitter, value, index) for index in range(count)]
    joined = results[0] if count == 1 else emitter.concatenate(results, 0)
    return emitter.reshape(joined, operator.outputs[0].shape)


# Float32 tensors quantized when the network runs, by the range of each group of their elements.

_LARGEST_I8 = 127.0
_LOWEST, _HIGHEST = -128.0, 127.0
# LiteRT rounds so many numbers at once, and the rest of a group one by one.
_AT_ONCE = 8
# More than 32 bits hold, and more than all that is quantized.
_TOO_LARGE, _BOUND = 2.0**31, 512.0
_HALF, _BELOW_HALF = np.float32(0.5), np.float32(0.5 - 2.0**-25)

Border = Sequence[tuple[int, int]]
"""Cells before and after each dimension that are no part of a group."""


@dataclass(frozen=True)
class RunTimeQuantized:
    """i8 values, and the f32 scale and i8 zero point of each group of them."""

    values: ir.Value
    scale: ir.Value
    zero_point: ir.Value


Quantizer = Callable[[Emitter, ir.Value, tuple[int, ...], Border], RunTimeQuantized]


def quantizer_of(emitter: Emitter, *, is_asymmetric: bool) -> Quantizer:
    """How float32 data of the products that XNNPACK's delegate takes are quantized; itself, it knows one way."""
    if emitter.is_delegated:
        return delegated
    return asymmetric if is_asymmetric else symmetric


def _to_integer(emitter: Emitter, value: ir.Value) -> ir.Value:
    """Whole numbers as i8."""
    how: dict[str, Any] = {"scales": (1.0,), "zero_points": (0,), "rounding": FloatRounding.HALF_EVEN}
    return emitter.build(qnn.QuantizeOp, value, element="i8", **how)


def _ends(emitter: Emitter, value: ir.Value, axes: tuple[int, ...]) -> tuple[ir.Value, ir.Value]:
    """Smallest and largest of the numbers and zero."""
    over = {"axes": axes, "keep_dims": True, "from_zero": True, "nan_as_zero": True}
    minimum = emitter.build(qnn.F32MinOp, value, element="f32", **over)
    return minimum, emitter.build(qnn.F32MaxOp, value, element="f32", **over)


def _rounded(emitter: Emitter, value: ir.Value, axes: tuple[int, ...], border: Border, otherwise: ir.Value) -> ir.Value:
    """``trunc(x + copysign(h, x))`` (TFLite tensor_utils with vectors of SSE), `otherwise` for NaN and minus infinity.

    What is rounded at once has h = 1/2, so that the number before 1/2 goes to 1; the others are rounded half away from
    zero, for which h is the number before 1/2.
    """
    s, shape = emitter.f32, shape_of(value.type)
    pairs = [*border, *[(0, 0)] * (len(shape) - len(border))]
    group = [extent - sum(pairs[axis]) if axis in axes else 1 for axis, extent in enumerate(shape)]
    count = math.prod(group)
    halves: ir.Value | float = float(_HALF)
    if count % _AT_ONCE:
        each = np.full(count, _HALF)
        each[count - count % _AT_ONCE :] = _BELOW_HALF
        inside = [pair if axis in axes else (0, 0) for axis, pair in enumerate(pairs)]
        halves = emitter.constant(np.pad(each.reshape(group), inside))
    rounded = s("trunc", s("addf", value, s("copysign", halves, value)))
    is_held = emitter.compare("gt", value, -_TOO_LARGE)
    return emitter.select(is_held, rounded, emitter.broadcast(otherwise, shape))


def asymmetric(emitter: Emitter, value: ir.Value, axes: tuple[int, ...], border: Border = ()) -> RunTimeQuantized:
    """``round(x * (1 / scale)) + zero_point`` in float32 (TFLite tensor_utils AsymmetricQuantizeFloats)."""
    ends = _ends(emitter, value, axes)
    scale = emitter.build(qnn.RangeScaleOp, *ends, element="f32")
    zero_point = emitter.build(qnn.RangeZeroPointOp, *ends, element="f32")
    s = emitter.f32
    zero_point = emitter.select(emitter.compare("eq", zero_point, zero_point), zero_point, 0.0)
    # Conversions of these give -2^31, and its sum with a negative zero point wraps around.
    is_negative = emitter.compare("lt", zero_point, 0.0)
    otherwise = emitter.select(is_negative, emitter.number(_TOO_LARGE, shape_of(scale.type)), -_TOO_LARGE)
    scaled = s("mulf", value, s("divf", 1.0, scale))
    rounded = _rounded(emitter, scaled, axes, border, otherwise)
    quantized = _to_integer(emitter, s("addf", rounded, zero_point))
    return RunTimeQuantized(quantized, scale, _to_integer(emitter, zero_point))


def symmetric(emitter: Emitter, value: ir.Value, axes: tuple[int, ...], border: Border = ()) -> RunTimeQuantized:
    """``round(x * (127 / range))`` in float32, the range the largest magnitude (SymmetricQuantizeFloats)."""
    minimum, maximum = _ends(emitter, value, axes)
    s = emitter.f32
    largest = s("maximumf", s("absf", minimum), maximum)
    is_positive = emitter.compare("gt", largest, 0.0)
    scale = emitter.select(is_positive, s("divf", largest, _LARGEST_I8), 1.0)
    factor = emitter.select(is_positive, s("divf", _LARGEST_I8, largest), 1.0)
    otherwise = emitter.number(-_TOO_LARGE, shape_of(scale.type))
    rounded = _rounded(emitter, s("mulf", value, factor), axes, border, otherwise)
    bounded = s("minimumf", s("maximumf", rounded, -_LARGEST_I8), _LARGEST_I8)
    zero_point = emitter.constant(np.broadcast_to(np.int8(0), shape_of(scale.type)))
    return RunTimeQuantized(_to_integer(emitter, bounded), scale, zero_point)


def delegated(emitter: Emitter, value: ir.Value, axes: tuple[int, ...], border: Border = ()) -> RunTimeQuantized:
    """``half_even(x * f) + zero_point`` with ``f = 255 / (max - min)``, the scale 1 / f (XNNPACK's qd8 parameters).

    The zero point is computed from the end of the range whose error is smaller, every step rounded to float32.
    """
    del border
    low, high = _ends(emitter, value, axes)
    s = emitter.f32
    factor = emitter.select(emitter.compare("eq", low, high), 1.0, s("divf", 255.0, s("subf", high, low)))
    below, above = s("mulf", low, factor), s("mulf", high, factor)
    error = s("addf", s("addf", below, _LOWEST), s("addf", above, _HIGHEST))
    is_from_below = emitter.compare("gt", error, 0.0)
    exact = emitter.select(is_from_below, s("subf", _LOWEST, below), s("subf", _HIGHEST, above))
    exact = emitter.select(emitter.compare("gt", exact, _LOWEST), exact, _LOWEST)
    zero_point = s("roundeven", s("minimumf", exact, _HIGHEST))
    scaled = s("mulf", value, factor)
    # A NaN is the largest number, and an end of the range that is NaN the lowest.
    rounded = s("roundeven", emitter.select(emitter.compare("lt", scaled, _BOUND), scaled, _BOUND))
    quantized = _to_integer(emitter, s("addf", rounded, zero_point))
    return RunTimeQuantized(quantized, s("divf", 1.0, factor), _to_integer(emitter, zero_point))
