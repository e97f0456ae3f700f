"""Plans pools, transposed convolutions and convolutions of volumes, of float32, with TFLite's sums in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tflite

from qdialect.dialect import F32Conv2DOp, PadOp, SliceOp, TransposeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, Shape, require
from qdialect.frontends.building.slices import Slice, check_indices, gather, take_slices
from qdialect.frontends.building.windows import Pool, Window
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.flatbuffer.reader import read_options
from qdialect.frontends.tflite.operators.checks import (
    Padding,
    constant,
    explicit_padding,
    f32_bounds,
    integers,
    operands,
)
from qdialect.frontends.tflite.operators.f32 import F32Builder, check_bias, finished
from qdialect.frontends.tflite.operators.registry import Emission, Emitter, imports_f32
from qdialect.ir._mlir import ir

# Pools and transposed convolutions of float32 images, with the sums of TFLite's reference kernels in their order.

Pair = tuple[int, int]
Pooled = Callable[[Emitter, ir.Value], ir.Value]
"""What is made of an image."""


@dataclass(frozen=True)
class _Pool:
    """Windows over an image [N, H, W, C], checked."""

    data: Tensor
    kernel: Pair
    strides: Pair
    padding: Padding
    activation: int

    @property
    def size(self) -> Pair:
        """Of the image."""
        return self.data.shape[1], self.data.shape[2]

    def window(self, output: Pair) -> Window:
        """With `output` windows."""
        return Window(self.kernel, self.strides, (1, 1), self.padding[:2], self.padding[2:], output)

    def counts(self, output: Pair) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        """How many elements of the image each window has, [H, W, 1]."""
        rows, columns = (self._covered(i, output[i]) for i in range(2))
        return (rows[:, None] * columns).astype(np.float32)[..., None]

    def _covered(self, axis: int, count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        begin = np.arange(count) * self.strides[axis] - self.padding[axis]
        end = np.minimum(begin + self.kernel[axis], self.size[axis])
        return end - np.maximum(begin, 0)


def _pool(operator: Operator) -> _Pool:
    def read(options: tflite.Pool2DOptions) -> tuple[int, int, Pair, Pair]:
        kernel = (options.FilterHeight(), options.FilterWidth())
        strides = (options.StrideH(), options.StrideW())
        return options.Padding(), options.FusedActivationFunction(), kernel, strides

    padding, activation, kernel, strides = read_options(operator, tflite.Pool2DOptions, read)
    (data,) = operands(operator, 1)
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    require(len(operator.outputs[0].shape) == 4, "output must have 4 dimensions")
    explicit = explicit_padding(padding, (data.shape[1], data.shape[2]), kernel, strides, (1, 1))
    f32_bounds(activation)
    return _Pool(data, kernel, strides, explicit, activation)


@imports_f32("MAX_POOL_2D")
def _max_pool_2d(operator: Operator) -> Emission:
    node, shape = _pool(operator), operator.outputs[0].shape
    windows = Pool.of(node.window((shape[1], shape[2])), node.size, operator.budget)
    windows.check()
    return _clamped(operator, node, windows.maxima)


@imports_f32("AVERAGE_POOL_2D")
def _average_pool_2d(operator: Operator) -> Emission:
    node = _pool(operator)
    return _clamped(operator, node, _means(operator, node))


def _clamped(operator: Operator, node: _Pool, pooled: Pooled) -> Emission:
    """What `pooled` makes of the image, with the activation that is fused."""

    def emit(emitter: Emitter) -> ir.Value:
        found = pooled(emitter, emitter.value(node.data))
        return F32Builder(emitter, operator.outputs[0].shape).clamp(found, node.activation)

    return emit


def _means(operator: Operator, node: _Pool) -> Pooled:
    """The elements of a window are added row by row; those of the padding do not count."""
    shape = operator.outputs[0].shape
    counts = node.counts((shape[1], shape[2]))
    require(bool((counts > 0).all()), f"every window must have an element of {list(node.size)}")
    channels = shape[3]
    operator.budget.spend_constant((channels, *node.kernel), 4)

    def build(emitter: Emitter, image: ir.Value) -> ir.Value:
        ones = emitter.constant(np.ones((channels, *node.kernel, 1), np.float32))
        how = {"strides": node.strides, "groups": channels}
        total = emitter.build(F32Conv2DOp, _padded_image(emitter, image, node.padding), ones, element="f32", **how)
        return F32Builder(emitter, shape)("divf", total, emitter.constant(counts))

    return build


@imports_f32("L2_POOL_2D")
def _l2_pool_2d(operator: Operator) -> Emission:
    """The root of the mean of the squares, which is that of the average pool."""
    node, shape = _pool(operator), operator.outputs[0].shape
    means = _means(operator, node)

    def roots(emitter: Emitter, image: ir.Value) -> ir.Value:
        squares = F32Builder(emitter, node.data.shape)("mulf", image, image)
        return F32Builder(emitter, shape)("sqrt", means(emitter, squares))

    return _clamped(operator, node, roots)


@imports_f32("TRANSPOSE_CONV")
def _transpose_conv(operator: Operator) -> Emission:
    """A convolution of the data with zeros between them, by the weights from the last tap to the first.

    The padding is that of the convolution of which the output would be the input (TFLite transpose_conv.cc).
    """

    def read(options: tflite.TransposeConvOptions) -> tuple[int, int, Pair]:
        return options.Padding(), options.FusedActivationFunction(), (options.StrideH(), options.StrideW())

    padding, activation, strides = read_options(operator, tflite.TransposeConvOptions, read)
    wanted, weight, data, *bias = operands(operator, 3, 4)
    require(weight.element == "f32", f"weight must be f32, but got {weight.element}")
    taps, shape = constant(weight, "weight"), operator.outputs[0].shape
    ranks = len(data.shape), taps.ndim, len(shape)
    require(ranks == (4, 4, 4), f"input, weight and output must have 4 dimensions, but got {list(ranks)}")
    require(integers(wanted, "output shape") == shape, f"output shape must be {list(shape)}")
    depth = taps.shape[3]
    require(data.shape[3] == depth, f"input must have {depth} channels, but got {data.shape[3]}")
    f32_bounds(activation)
    check_bias(bias, taps.shape[0])
    window = (taps.shape[1], taps.shape[2])
    top, left, *_ = explicit_padding(padding, (shape[1], shape[2]), window, strides, (1, 1))
    before = (window[0] - 1 - top, window[1] - 1 - left)
    # Behind the last element there are zeros already, one fewer than the stride.
    after = tuple(shape[1 + i] - before[i] + window[i] - 1 - data.shape[1 + i] * strides[i] for i in range(2))

    def emit(emitter: Emitter) -> ir.Value:
        apart = _padded_image(emitter, _image_with_zeros(emitter, emitter.value(data), strides), (*before, *after))
        backwards = emitter.constant(np.ascontiguousarray(taps[:, ::-1, ::-1]))
        total = emitter.build(F32Conv2DOp, apart, backwards, element="f32", rounded_products=True)
        return finished(emitter, total, bias, activation, shape)

    return emit


def _image_with_zeros(emitter: Emitter, data: ir.Value, strides: Pair) -> ir.Value:
    """Zeros behind each row and column of the data, so that these are `strides` apart."""
    images, height, width, channels = shape_of(data.type)
    cells = emitter.reshape(data, (images, height, 1, width, 1, channels))
    high = (0, 0, strides[0] - 1, 0, strides[1] - 1, 0)
    padded = emitter.build(PadOp, cells, element="f32", low=(0,) * 6, high=high, value=0) if any(high) else cells
    return emitter.reshape(padded, (images, height * strides[0], width * strides[1], channels))


def _padded_image(emitter: Emitter, image: ir.Value, padding: tuple[int, ...]) -> ir.Value:
    """Zeros at (top, left, bottom, right) of an image; less than none cuts elements off."""
    images, height, width, channels = shape_of(image.type)
    top, left, bottom, right = (max(-amount, 0) for amount in padding)
    if top or left or bottom or right:
        size = (images, height - top - bottom, width - left - right, channels)
        image = emitter.build(SliceOp, image, element="f32", begin=(0, top, left, 0), size=size, strides=(1, 1, 1, 1))
    top, left, bottom, right = (max(amount, 0) for amount in padding)
    if not (top or left or bottom or right):
        return image
    border = {"low": (0, top, left, 0), "high": (0, bottom, right, 0), "value": 0}
    return emitter.build(PadOp, image, element="f32", **border)


# CONV_3D and CONV_3D_TRANSPOSE of float32 volumes NDHWC, with the sums of TFLite's reference kernels in their order.
#
# Every row that a window reads is written out for it, so that windows over volumes become windows over images whose
# rows
# are those of a window one after another: a convolution of the images adds the products up in the same order.

_VOLUME_RANK = 5
Amounts = tuple[int, ...]


@dataclass(frozen=True)
class _VolumeOptions:
    padding: int
    activation: int
    strides: Amounts
    dilation: Amounts

    @classmethod
    def of(cls, operator: Operator) -> _VolumeOptions:
        def read(options: tflite.Conv3DOptions) -> _VolumeOptions:
            strides = (options.StrideD(), options.StrideH(), options.StrideW())
            dilation = (options.DilationDFactor(), options.DilationHFactor(), options.DilationWFactor())
            return cls(options.Padding(), options.FusedActivationFunction(), strides, dilation)

        return read_options(operator, tflite.Conv3DOptions, read)

    def padding_of(self, size: Shape, window: Shape) -> tuple[Amounts, Amounts]:
        """Before and behind each dimension of volumes of this size."""
        flat = [
            explicit_padding(self.padding, (size[i], 1), (window[i], 1), (self.strides[i], 1), (self.dilation[i], 1))
            for i in range(3)
        ]
        return tuple(one[0] for one in flat), tuple(one[2] for one in flat)


@imports_f32("CONV_3D")
def _conv_3d(operator: Operator) -> Emission:
    """Weights are [D, H, W, I, O]."""
    how = _VolumeOptions.of(operator)
    data, weight, *bias = operands(operator, 2, 3)
    taps = np.moveaxis(_volume_weight(weight, data), 4, 0)
    shape = _checked_volume(operator, data, taps, how, bias)
    low, high = how.padding_of(data.shape[1:4], taps.shape[1:4])

    def emit(emitter: Emitter) -> ir.Value:
        volumes = _padded_volume(emitter, emitter.value(data), low, high)
        total = _convolved(emitter, volumes, taps, how.strides, how.dilation, shape)
        return finished(emitter, total, bias, how.activation, shape)

    return emit


@imports_f32("CONV_3D_TRANSPOSE")
def _conv_3d_transpose(operator: Operator) -> Emission:
    """A convolution of the data with zeros between them, by the weights [D, H, W, O, I] from the last to the first."""
    how = _VolumeOptions.of(operator)
    wanted, weight, data, *bias = operands(operator, 3, 4)
    taps = np.moveaxis(_volume_weight(weight, data), 3, 0)
    shape = _checked_volume(operator, data, taps, how, bias)
    require(integers(wanted, "output shape") == shape, f"output shape must be {list(shape)}")
    low, _ = how.padding_of(shape[1:4], taps.shape[1:4])
    window = [(taps.shape[1 + i] - 1) * how.dilation[i] for i in range(3)]
    before = tuple(window[i] - low[i] for i in range(3))
    # Behind the last element there are zeros already, one fewer than the stride.
    after = tuple(shape[1 + i] - before[i] + window[i] - data.shape[1 + i] * how.strides[i] for i in range(3))
    backwards = np.ascontiguousarray(taps[:, ::-1, ::-1, ::-1])

    def emit(emitter: Emitter) -> ir.Value:
        apart = _padded_volume(emitter, _volume_with_zeros(emitter, emitter.value(data), how.strides), before, after)
        total = _convolved(emitter, apart, backwards, (1, 1, 1), how.dilation, shape)
        return finished(emitter, total, bias, how.activation, shape)

    return emit


def _volume_weight(weight: Tensor, data: Tensor) -> Array:
    require(weight.element == "f32", f"weight must be f32, but got {weight.element}")
    taps = constant(weight, "weight")
    ranks = (len(data.shape), taps.ndim)
    require(
        ranks == (_VOLUME_RANK, _VOLUME_RANK),
        f"input and weight must have 5 dimensions, but got {ranks[0]} and {ranks[1]}",
    )
    return taps


def _checked_volume(operator: Operator, data: Tensor, taps: Array, how: _VolumeOptions, bias: list[Tensor]) -> Shape:
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
    emitter: Emitter, volumes: ir.Value, taps: Array, strides: Amounts, dilation: Amounts, shape: Shape
) -> ir.Value:
    (depth, height, width), (slices, lines) = shape[1:4], taps.shape[1:3]
    taken = gather(emitter, volumes, 1, _positions(depth, strides[0], slices, dilation[0]))
    taken = gather(emitter, taken, 2, _positions(height, strides[1], lines, dilation[1]))
    batch, _, _, columns, channels = shape_of(taken.type)
    apart = emitter.reshape(taken, (batch, depth, slices, height, lines, columns, channels))
    order = (0, 1, 3, 2, 4, 5, 6)
    moved = emitter.build(TransposeOp, apart, element="f32", permutation=order) if slices > 1 else apart
    images = emitter.reshape(moved, (batch * depth, height * slices * lines, columns, channels))
    weight = np.ascontiguousarray(taps).reshape(len(taps), slices * lines, taps.shape[3], channels)
    how: dict[str, Any] = {"strides": (slices * lines, strides[2]), "dilation": (1, dilation[2])}
    total = emitter.build(F32Conv2DOp, images, emitter.constant(weight), element="f32", rounded_products=True, **how)
    return emitter.reshape(total, (batch, depth, height, width, len(taps)))


def _positions(count: int, stride: int, taps: int, dilation: int) -> list[int]:
    """The rows that each of `count` windows reads, one window after another."""
    return [window * stride + tap * dilation for window in range(count) for tap in range(taps)]


def _volume_with_zeros(emitter: Emitter, data: ir.Value, strides: Amounts) -> ir.Value:
    """Zeros behind each element along the three dimensions, so that these are `strides` apart."""
    if strides == (1, 1, 1):
        return data
    batch, *size, channels = shape_of(data.type)
    split = [extent for one in size for extent in (one, 1)]
    cells = emitter.reshape(data, (batch, *split, channels))
    high = (0, *(extent for stride in strides for extent in (0, stride - 1)), 0)
    padded = emitter.build(PadOp, cells, element="f32", low=(0,) * 8, high=high, value=0)
    extents = (extent * stride for extent, stride in zip(size, strides, strict=True))
    return emitter.reshape(padded, (batch, *extents, channels))


def _padded_volume(emitter: Emitter, volumes: ir.Value, before: Sequence[int], after: Sequence[int]) -> ir.Value:
    """Zeros around the volumes; less than none cuts elements off."""
    shape, ends = shape_of(volumes.type), list(zip(before, after, strict=True))
    cut = [
        Slice(max(-low, 0), 1, extent - max(-low, 0) - max(-high, 0))
        for extent, (low, high) in zip(shape[1:4], ends, strict=True)
    ]
    volumes = take_slices(emitter, volumes, [Slice(0, 1, shape[0]), *cut, Slice(0, 1, shape[4])])
    low, high = ((0, *(max(amount, 0) for amount in side), 0) for side in (before, after))
    if not any((*low, *high)):
        return volumes
    return emitter.build(PadOp, volumes, element="f32", low=low, high=high, value=0)
