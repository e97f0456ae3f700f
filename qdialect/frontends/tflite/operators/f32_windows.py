"""Plans pools, transposed convolutions and convolutions of volumes, of float32, with TFLite's sums in their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from qdialect.dialect import DynamicConv2DOp, F32Conv2DOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, Shape, require
from qdialect.frontends.building.op_builder import Arithmetic, OpBuilder
from qdialect.frontends.building.slices import Slice, check_indices, framed, gather, take_slices
from qdialect.frontends.building.windows import Pool, Window
from qdialect.frontends.planning.convolution import TransposedWindow, rows_of_windows, transposed_sums
from qdialect.frontends.planning.pool import sums_of_windows
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.f32 import check_bias, clamped, finished
from qdialect.frontends.tflite.operators.hybrid import MAX_IMAGES, RunTimeQuantized, asymmetric, delegated, i8_weights
from qdialect.frontends.tflite.operators.registry import Building, imports_f32, imports_hybrid
from qdialect.ir._mlir import ir

# Pools and transposed convolutions of float32 images, with the sums of TFLite's reference kernels in their order.


@imports_f32("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D")
def _pool(operator: Operator) -> Building:
    """The elements of a window are added row by row; those of the padding do not count.

    L2_POOL_2D is the root of the mean of the squares.
    """
    options, shape = checks.window_options(operator), operator.outputs[0].shape
    (data,) = checks.operands(operator, 1)
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    require(len(shape) == 4, "output must have 4 dimensions")
    size, is_root = data.shape[1:3], operator.kind == "L2_POOL_2D"
    padding = options.explicit(size)
    checks.f32_bounds(options.activation)
    window = Window(options.kernel, options.strides, (1, 1), padding[:2], padding[2:], shape[1:3])
    if operator.kind == "MAX_POOL_2D":
        windows = Pool.of(window, size, operator.budget)
        windows.check()
        emitter = yield
        image = emitter.value(data)
        if not emitter.is_delegated:
            # The reference kernel passes over NaN.
            s = Arithmetic(emitter)
            image = s.select(s.compare("eq", image, image), image, -np.inf)
        return clamped(emitter, windows.maxima(emitter, image), options.activation, is_bounded=True)
    counts = window.counts(size).astype(np.float32)[..., None]
    require(bool((counts > 0).all()), f"every window must have an element of {list(size)}")
    operator.budget.spend_constant((shape[3], *window.kernel), 4)
    emitter = yield
    image, s = emitter.value(data), emitter.f32
    image = s("mulf", image, image) if is_root else image
    mean = s("divf", sums_of_windows(emitter, image, window), emitter.constant(counts))
    return clamped(emitter, s("sqrt", mean) if is_root else mean, options.activation, is_bounded=True)


@imports_f32("TRANSPOSE_CONV")
def _transpose_conv(operator: Operator) -> Building:
    """The padding is that of the convolution of which the output would be the input (TFLite transpose_conv.cc)."""
    wanted, weight, data, *bias = checks.operands(operator, 3, 4)
    taps, shape = checks.f32_taps(weight), operator.outputs[0].shape
    ranks = len(data.shape), taps.ndim, len(shape)
    require(ranks == (4, 4, 4), f"input, weight and output must have 4 dimensions, but got {list(ranks)}")
    require(data.shape[3] == taps.shape[3], f"input must have {taps.shape[3]} channels, but got {data.shape[3]}")
    return _transposed(operator, data, taps, wanted, bias)


@imports_hybrid("TRANSPOSE_CONV")
def _hybrid_transpose_conv(operator: Operator) -> Building:
    """``sum of (a - z) * w`` times both scales, in which every image has a scale and a zero point of its own.

    The sums are of whole numbers, as by XNNPACK's delegate, which adds the bias at once; LiteRT's own kernel scales,
    rounds and adds one product after the other.
    """
    wanted, weight, data, *bias = checks.operands(operator, 3, 4)
    taps, shape, how = i8_weights(weight, 4, 0), operator.outputs[0].shape, checks.window_options(operator)
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
    require(images <= MAX_IMAGES, f"input must have at most {MAX_IMAGES} images, but got {images}")

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
        return emitter.build(DynamicConv2DOp, *parts, element="f32", weight_scales=(1.0,), dilation=steps)

    return transposed_sums(weight, window, convolve)(emitter, from_point(values))


def _transposed(operator: Operator, data: Tensor, taps: Array, wanted: Tensor, bias: list[Tensor]) -> Building:
    """The sums of `taps` [O, ..., I]; XNNPACK adds up those of an image in the order of the taps, from the bias on."""
    how, shape = checks.window_options(operator), operator.outputs[0].shape
    require(checks.integers(wanted, "output shape") == shape, f"output shape must be {list(shape)}")
    checks.f32_bounds(how.activation)
    check_bias(bias, taps.shape[0])
    size, kernel = data.shape[1:-1], taps.shape[1:-1]
    low = how.explicit(shape[1:-1], kernel)[: len(size)]
    emitter = yield
    # The delegate takes images whose strides are no larger than the kernel.
    is_reached = all(k >= s for k, s in zip(kernel, how.strides, strict=True))
    image, is_delegated = emitter.value(data), emitter.is_delegated and is_reached and len(size) == _IMAGE_RANK
    starts = [np.ravel(one.data) for one in bias if one.data is not None] if is_delegated else []
    weight = np.moveaxis(taps, (0, -1), (1, 0))
    is_turned = is_delegated and any(k > s for k, s in zip(kernel, how.strides, strict=True))
    if is_turned:
        extents = zip(size, how.strides, kernel, how.dilation, low, shape[1:-1], strict=True)
        low = tuple((n - 1) * s + (k - 1) * d + 1 - before - after for n, s, k, d, before, after in extents)
        weight, image = np.flip(weight, (2, 3)), _turned(emitter, image)

    def convolve(emitter: OpBuilder, data: ir.Value, taps: Array, steps: Shape, start: Array | None) -> ir.Value:
        return _convolved(emitter, data, taps, (1,) * len(steps), steps, start, is_rounded=not is_delegated)

    window = TransposedWindow(how.strides, how.dilation, low, shape[1:-1])
    total = transposed_sums(weight, window, convolve, starts[0] if starts else None)(emitter, image)
    total = _turned(emitter, total) if is_turned else total
    return finished(emitter, total, [] if starts else bias, how.activation, shape, is_bounded=True)


def _turned(emitter: OpBuilder, image: ir.Value) -> ir.Value:
    """Images from the last row and column to the first."""
    for axis in (1, 2):
        image = gather(emitter, image, axis, range(shape_of(image.type)[axis])[::-1])
    return image


# CONV_3D and CONV_3D_TRANSPOSE of float32 volumes NDHWC, with the sums of TFLite's reference kernels in their order.
#
# Every row that a window reads is written out for it, so that windows over volumes become windows over images whose
# rows are those of a window one after another: a convolution of the images adds the products up in the same order.

_IMAGE_RANK, _VOLUME_RANK = 2, 5


@imports_f32("CONV_3D")
def _conv_3d(operator: Operator) -> Building:
    """Weights are [D, H, W, I, O]."""
    how = checks.window_options(operator)
    data, weight, *bias = checks.operands(operator, 2, 3)
    taps = np.moveaxis(_volume_weight(weight, data), 4, 0)
    shape = _checked_volume(operator, data, taps, how, bias)
    padding = how.explicit(data.shape[1:4], taps.shape[1:4])
    low, high = padding[:3], padding[3:]
    emitter = yield
    volumes = framed(emitter, emitter.value(data), (0, *low, 0), (0, *high, 0))
    total = _convolved(emitter, volumes, taps, how.strides, how.dilation)
    return finished(emitter, total, bias, how.activation, shape, is_bounded=True)


@imports_f32("CONV_3D_TRANSPOSE")
def _conv_3d_transpose(operator: Operator) -> Building:
    """Weights are [D, H, W, O, I]."""
    wanted, weight, data, *bias = checks.operands(operator, 3, 4)
    taps = np.moveaxis(_volume_weight(weight, data), 3, 0)
    _checked_volume(operator, data, taps, checks.window_options(operator), bias)
    return _transposed(operator, data, taps, wanted, bias)


def _volume_weight(weight: Tensor, data: Tensor) -> Array:
    taps = checks.f32_taps(weight)
    ranks = (len(data.shape), taps.ndim)
    require(
        ranks == (_VOLUME_RANK, _VOLUME_RANK),
        f"input and weight must have 5 dimensions, but got {ranks[0]} and {ranks[1]}",
    )
    return taps


def _checked_volume(
    operator: Operator, data: Tensor, taps: Array, how: checks.WindowOptions, bias: list[Tensor]
) -> Shape:
    """The shape of the output; `taps` are [O, D, H, W, I]."""
    shape = operator.outputs[0].shape
    require(len(shape) == _VOLUME_RANK, f"output must have 5 dimensions, but got {len(shape)}")
    require(data.shape[4] == taps.shape[4], f"input must have {taps.shape[4]} channels, but got {data.shape[4]}")
    require(min(*how.strides, *how.dilation) >= 1, "strides and dilation must be at least 1")
    checks.f32_bounds(how.activation)
    check_bias(bias, taps.shape[0])
    for i in range(2):
        check_indices(shape[1 + i] * taps.shape[1 + i], operator.budget)
    return shape


def _convolved(
    emitter: OpBuilder,
    data: ir.Value,
    taps: Array,
    strides: Shape,
    dilation: Shape,
    start: Array | None = None,
    *,
    is_rounded: bool = True,
) -> ir.Value:
    """The sums of products of images, or of volumes, whose border is there."""
    how: dict[str, Any] = {"strides": strides, "dilation": dilation}
    weight, shape = np.ascontiguousarray(taps), None
    if len(strides) > _IMAGE_RANK:
        zeros, (batch, *size, _) = (0,) * len(strides), shape_of(data.type)
        extents = zip(size, taps.shape[1:-1], strides, dilation, strict=True)
        output = tuple((n - (k - 1) * d - 1) // s + 1 for n, k, s, d in extents)
        window = Window(taps.shape[1:-1], strides, dilation, zeros, zeros, output)
        data, flat = rows_of_windows(emitter, data, window)
        weight = weight.reshape(len(taps), *flat.kernel, taps.shape[-1])
        how, shape = {"strides": flat.strides, "dilation": flat.dilation}, (batch, *output, len(taps))
    operands = map(emitter.constant, (weight,) if start is None else (weight, start))
    total = emitter.build(F32Conv2DOp, data, *operands, element="f32", rounded_products=is_rounded, **how)
    return total if shape is None else emitter.reshape(total, shape)
