"""Plans pools, transposed convolutions and convolutions of volumes, of float32, with TFLite's sums in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect.dialect import F32Conv2DOp
from qdialect.frontends.building.checks import Array, Shape, require
from qdialect.frontends.building.slices import check_indices, framed, spaced
from qdialect.frontends.building.windows import Pool, Window
from qdialect.frontends.planning.convolution import rows_of_windows
from qdialect.frontends.planning.pool import sums_of_windows
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import (
    WindowOptions,
    constant,
    f32_bounds,
    integers,
    operands,
    window_options,
)
from qdialect.frontends.tflite.operators.f32 import F32Builder, check_bias, finished
from qdialect.frontends.tflite.operators.registry import Building, Emitter, imports_f32
from qdialect.ir._mlir import ir

# Pools and transposed convolutions of float32 images, with the sums of TFLite's reference kernels in their order.

Pooled = Callable[[Emitter, ir.Value], ir.Value]
"""What is made of an image."""


@dataclass(frozen=True)
class _Pool:
    """Windows over an image [N, H, W, C], checked."""

    data: Tensor
    window: Window
    activation: int

    @property
    def size(self) -> Shape:
        """Of the image."""
        return self.data.shape[1:3]


def _pool(operator: Operator) -> _Pool:
    options, output = window_options(operator), operator.outputs[0].shape
    (data,) = operands(operator, 1)
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    require(len(output) == 4, "output must have 4 dimensions")
    padding = options.explicit(data.shape[1:3])
    f32_bounds(options.activation)
    window = Window(options.kernel, options.strides, (1, 1), padding[:2], padding[2:], output[1:3])
    return _Pool(data, window, options.activation)


@imports_f32("MAX_POOL_2D")
def _max_pool_2d(operator: Operator) -> Building:
    node = _pool(operator)
    windows = Pool.of(node.window, node.size, operator.budget)
    windows.check()
    return _clamped(operator, node, windows.maxima)


@imports_f32("AVERAGE_POOL_2D")
def _average_pool_2d(operator: Operator) -> Building:
    node = _pool(operator)
    return _clamped(operator, node, _means(operator, node))


def _clamped(operator: Operator, node: _Pool, pooled: Pooled) -> Building:
    """What `pooled` makes of the image, with the activation that is fused."""
    emitter = yield
    found = pooled(emitter, emitter.value(node.data))
    return F32Builder(emitter, operator.outputs[0].shape).clamp(found, node.activation)


def _means(operator: Operator, node: _Pool) -> Pooled:
    """The elements of a window are added row by row; those of the padding do not count."""
    shape, window = operator.outputs[0].shape, node.window
    counts = window.counts(node.size).astype(np.float32)[..., None]
    require(bool((counts > 0).all()), f"every window must have an element of {list(node.size)}")
    operator.budget.spend_constant((shape[3], *window.kernel), 4)

    def build(emitter: Emitter, image: ir.Value) -> ir.Value:
        return F32Builder(emitter, shape)("divf", sums_of_windows(emitter, image, window), emitter.constant(counts))

    return build


@imports_f32("L2_POOL_2D")
def _l2_pool_2d(operator: Operator) -> Building:
    """The root of the mean of the squares, which is that of the average pool."""
    node, shape = _pool(operator), operator.outputs[0].shape
    means = _means(operator, node)

    def roots(emitter: Emitter, image: ir.Value) -> ir.Value:
        squares = F32Builder(emitter, node.data.shape)("mulf", image, image)
        return F32Builder(emitter, shape)("sqrt", means(emitter, squares))

    return _clamped(operator, node, roots)


@imports_f32("TRANSPOSE_CONV")
def _transpose_conv(operator: Operator) -> Building:
    """A convolution of the data with zeros between them, by the weights from the last tap to the first.

    The padding is that of the convolution of which the output would be the input (TFLite transpose_conv.cc).
    """
    options = window_options(operator)
    wanted, weight, data, *bias = operands(operator, 3, 4)
    require(weight.element == "f32", f"weight must be f32, but got {weight.element}")
    taps, shape = constant(weight, "weight"), operator.outputs[0].shape
    ranks = len(data.shape), taps.ndim, len(shape)
    require(ranks == (4, 4, 4), f"input, weight and output must have 4 dimensions, but got {list(ranks)}")
    require(integers(wanted, "output shape") == shape, f"output shape must be {list(shape)}")
    depth = taps.shape[3]
    require(data.shape[3] == depth, f"input must have {depth} channels, but got {data.shape[3]}")
    f32_bounds(options.activation)
    check_bias(bias, taps.shape[0])
    strides, window = options.strides, taps.shape[1:3]
    top, left, *_ = options.explicit(shape[1:3], window)
    before = (window[0] - 1 - top, window[1] - 1 - left)
    # Behind the last element there are zeros already, one fewer than the stride.
    after = tuple(shape[1 + i] - before[i] + window[i] - 1 - data.shape[1 + i] * strides[i] for i in range(2))
    emitter = yield
    cells = spaced(emitter, emitter.value(data), (1, *strides, 1))
    apart = framed(emitter, cells, (0, *before, 0), (0, *after, 0))
    backwards = emitter.constant(np.ascontiguousarray(taps[:, ::-1, ::-1]))
    total = emitter.build(F32Conv2DOp, apart, backwards, element="f32", rounded_products=True)
    return finished(emitter, total, bias, options.activation, shape)


# CONV_3D and CONV_3D_TRANSPOSE of float32 volumes NDHWC, with the sums of TFLite's reference kernels in their order.
#
# Every row that a window reads is written out for it, so that windows over volumes become windows over images whose
# rows
# are those of a window one after another: a convolution of the images adds the products up in the same order.

_VOLUME_RANK = 5


@imports_f32("CONV_3D")
def _conv_3d(operator: Operator) -> Building:
    """Weights are [D, H, W, I, O]."""
    how = window_options(operator)
    data, weight, *bias = operands(operator, 2, 3)
    taps = np.moveaxis(_volume_weight(weight, data), 4, 0)
    shape = _checked_volume(operator, data, taps, how, bias)
    padding = how.explicit(data.shape[1:4], taps.shape[1:4])
    low, high = padding[:3], padding[3:]
    emitter = yield
    volumes = framed(emitter, emitter.value(data), (0, *low, 0), (0, *high, 0))
    total = _convolved(emitter, volumes, taps, how.strides, how.dilation, shape)
    return finished(emitter, total, bias, how.activation, shape)


@imports_f32("CONV_3D_TRANSPOSE")
def _conv_3d_transpose(operator: Operator) -> Building:
    """A convolution of the data with zeros between them, by the weights [D, H, W, O, I] from the last to the first."""
    how = window_options(operator)
    wanted, weight, data, *bias = operands(operator, 3, 4)
    taps = np.moveaxis(_volume_weight(weight, data), 3, 0)
    shape = _checked_volume(operator, data, taps, how, bias)
    require(integers(wanted, "output shape") == shape, f"output shape must be {list(shape)}")
    low = how.explicit(shape[1:4], taps.shape[1:4])
    window = [(taps.shape[1 + i] - 1) * how.dilation[i] for i in range(3)]
    before = tuple(window[i] - low[i] for i in range(3))
    # Behind the last element there are zeros already, one fewer than the stride.
    after = tuple(shape[1 + i] - before[i] + window[i] - data.shape[1 + i] * how.strides[i] for i in range(3))
    backwards = np.ascontiguousarray(taps[:, ::-1, ::-1, ::-1])
    emitter = yield
    cells = spaced(emitter, emitter.value(data), (1, *how.strides, 1))
    apart = framed(emitter, cells, (0, *before, 0), (0, *after, 0))
    total = _convolved(emitter, apart, backwards, (1, 1, 1), how.dilation, shape)
    return finished(emitter, total, bias, how.activation, shape)


def _volume_weight(weight: Tensor, data: Tensor) -> Array:
    require(weight.element == "f32", f"weight must be f32, but got {weight.element}")
    taps = constant(weight, "weight")
    ranks = (len(data.shape), taps.ndim)
    require(
        ranks == (_VOLUME_RANK, _VOLUME_RANK),
        f"input and weight must have 5 dimensions, but got {ranks[0]} and {ranks[1]}",
    )
    return taps


def _checked_volume(operator: Operator, data: Tensor, taps: Array, how: WindowOptions, bias: list[Tensor]) -> Shape:
    """The shape of the output; `taps` are [O, D, H, W, I]."""
    shape = operator.outputs[0].shape
    require(len(shape) == _VOLUME_RANK, f"output must have 5 dimensions, but got {len(shape)}")
    require(data.shape[4] == taps.shape[4], f"input must have {taps.shape[4]} channels, but got {data.shape[4]}")
    require(min(*how.strides, *how.dilation) >= 1, "strides and dilation must be at least 1")
    f32_bounds(how.activation)
    check_bias(bias, taps.shape[0])
    for i in range(2):
        check_indices(shape[1 + i] * taps.shape[1 + i], operator.budget)
    return shape


def _convolved(
    emitter: Emitter, volumes: ir.Value, taps: Array, strides: Shape, dilation: Shape, shape: Shape
) -> ir.Value:
    zeros = (0, 0, 0)
    rows, flat = rows_of_windows(emitter, volumes, Window(taps.shape[1:4], strides, dilation, zeros, zeros, shape[1:4]))
    weight = np.ascontiguousarray(taps).reshape(len(taps), *flat.kernel, taps.shape[4])
    how: dict[str, Any] = {"strides": flat.strides, "dilation": flat.dilation}
    total = emitter.build(F32Conv2DOp, rows, emitter.constant(weight), element="f32", rounded_products=True, **how)
    return emitter.reshape(total, shape)
