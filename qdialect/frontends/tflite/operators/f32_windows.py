"""Pools and transposed convolutions of float32 images, with the sums of TFLite's reference kernels in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tflite

from qdialect._mlir import ir
from qdialect.dialect import F32Conv2DOp, PadOp, SliceOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import require
from qdialect.frontends.planning.f32_pool import Pool
from qdialect.frontends.planning.window import Window
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.activation_range import f32_bounds
from qdialect.frontends.tflite.operators.checks import constant, integers, operands
from qdialect.frontends.tflite.operators.f32 import F32Builder, check_bias, finished
from qdialect.frontends.tflite.operators.registry import Emission, imports_f32
from qdialect.frontends.tflite.operators.window import Padding, explicit_padding
from qdialect.frontends.tflite.reader import read_options

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
        total = emitter.build(F32Conv2DOp, _padded(emitter, image, node.padding), ones, element="f32", **how)
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
        apart = _padded(emitter, _with_zeros(emitter, emitter.value(data), strides), (*before, *after))
        backwards = emitter.constant(np.ascontiguousarray(taps[:, ::-1, ::-1]))
        total = emitter.build(F32Conv2DOp, apart, backwards, element="f32", rounded_products=True)
        return finished(emitter, total, bias, activation, shape)

    return emit


def _with_zeros(emitter: Emitter, data: ir.Value, strides: Pair) -> ir.Value:
    """Zeros behind each row and column of the data, so that these are `strides` apart."""
    images, height, width, channels = shape_of(data.type)
    cells = emitter.reshape(data, (images, height, 1, width, 1, channels))
    high = (0, 0, strides[0] - 1, 0, strides[1] - 1, 0)
    padded = emitter.build(PadOp, cells, element="f32", low=(0,) * 6, high=high, value=0) if any(high) else cells
    return emitter.reshape(padded, (images, height * strides[0], width * strides[1], channels))


def _padded(emitter: Emitter, image: ir.Value, padding: tuple[int, ...]) -> ir.Value:
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
