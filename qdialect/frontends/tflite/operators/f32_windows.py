"""Plans pools, transposed convolutions and convolutions of volumes, of float32, with TFLite's sums in their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from qdialect.dialect import F32Conv2DOp
from qdialect.frontends.building.checks import Array, Shape, require
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.building.slices import check_indices, framed, spaced
from qdialect.frontends.building.windows import Pool, Window
from qdialect.frontends.planning.convolution import rows_of_windows
from qdialect.frontends.planning.pool import sums_of_windows
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.f32 import check_bias, clamped, finished
from qdialect.frontends.tflite.operators.registry import Building, Emitter, imports_f32
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
    require(weight.element == "f32", f"weight must be f32, but got {weight.element}")
    taps, shape = checks.constant(weight, "weight"), operator.outputs[0].shape
    ranks = len(data.shape), taps.ndim, len(shape)
    require(ranks == (4, 4, 4), f"input, weight and output must have 4 dimensions, but got {list(ranks)}")
    require(data.shape[3] == taps.shape[3], f"input must have {taps.shape[3]} channels, but got {data.shape[3]}")
    return _transposed(operator, data, taps, wanted, bias)


def _transposed(operator: Operator, data: Tensor, taps: Array, wanted: Tensor, bias: list[Tensor]) -> Building:
    """A convolution of the data with zeros between them, by `taps` [O, ..., I] from the last one to the first."""
    how, shape = checks.window_options(operator), operator.outputs[0].shape
    require(checks.integers(wanted, "output shape") == shape, f"output shape must be {list(shape)}")
    checks.f32_bounds(how.activation)
    check_bias(bias, taps.shape[0])
    low, axes = how.explicit(shape[1:-1], taps.shape[1:-1]), range(len(shape) - 2)
    window = [(taps.shape[1 + i] - 1) * how.dilation[i] for i in axes]
    before = tuple(window[i] - low[i] for i in axes)
    # Behind the last element there are zeros already, one fewer than the stride.
    after = tuple(shape[1 + i] - before[i] + window[i] - data.shape[1 + i] * how.strides[i] for i in axes)
    backwards = np.ascontiguousarray(np.flip(taps, tuple(range(1, taps.ndim - 1))))
    emitter = yield
    cells = spaced(emitter, emitter.value(data), (1, *how.strides, 1))
    apart = framed(emitter, cells, (0, *before, 0), (0, *after, 0))
    total = _convolved(emitter, apart, backwards, (1,) * len(axes), how.dilation, shape)
    return finished(emitter, total, bias, how.activation, shape, is_bounded=True)


# CONV_3D and CONV_3D_TRANSPOSE of float32 volumes NDHWC, with the sums of TFLite's reference kernels in their order.
#
# Every row that a window reads is written out for it, so that windows over volumes become windows over images whose
# rows
# are those of a window one after another: a convolution of the images adds the products up in the same order.

_VOLUME_RANK = 5


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
    total = _convolved(emitter, volumes, taps, how.strides, how.dilation, shape)
    return finished(emitter, total, bias, how.activation, shape, is_bounded=True)


@imports_f32("CONV_3D_TRANSPOSE")
def _conv_3d_transpose(operator: Operator) -> Building:
    """Weights are [D, H, W, O, I]."""
    wanted, weight, data, *bias = checks.operands(operator, 3, 4)
    taps = np.moveaxis(_volume_weight(weight, data), 3, 0)
    _checked_volume(operator, data, taps, checks.window_options(operator), bias)
    return _transposed(operator, data, taps, wanted, bias)


def _volume_weight(weight: Tensor, data: Tensor) -> Array:
    require(weight.element == "f32", f"weight must be f32, but got {weight.element}")
    taps = checks.constant(weight, "weight")
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
    emitter: Emitter, data: ir.Value, taps: Array, strides: Shape, dilation: Shape, shape: Shape
) -> ir.Value:
    """The sums of products of images, or of volumes, whose border is there."""
    how: dict[str, Any] = {"strides": strides, "dilation": dilation}
    weight = np.ascontiguousarray(taps)
    if len(strides) > 2:
        zeros = (0,) * len(strides)
        window = Window(taps.shape[1:-1], strides, dilation, zeros, zeros, shape[1:-1])
        data, flat = rows_of_windows(emitter, data, window)
        weight = weight.reshape(len(taps), *flat.kernel, taps.shape[-1])
        how = {"strides": flat.strides, "dilation": flat.dilation}
    total = emitter.build(F32Conv2DOp, data, emitter.constant(weight), element="f32", rounded_products=True, **how)
    return emitter.reshape(total, shape)
