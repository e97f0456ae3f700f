"""CONV_3D and CONV_3D_TRANSPOSE of float32 volumes NDHWC, with the sums of TFLite's reference kernels in their order.

Every row that a window reads is written out for it, so that windows over volumes become windows over images whose rows
are those of a window one after another: a convolution of the images adds the products up in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tflite

from qdialect._mlir import ir
from qdialect.dialect import F32Conv2DOp, PadOp, TransposeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.slices import Slice, check_indices, gather, take_slices
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.activation_range import f32_bounds
from qdialect.frontends.tflite.operators.checks import constant, integers, operands
from qdialect.frontends.tflite.operators.f32 import check_bias, finished
from qdialect.frontends.tflite.operators.registry import Emission, imports_f32
from qdialect.frontends.tflite.operators.window import explicit_padding
from qdialect.frontends.tflite.reader import read_options

_RANK = 5
Amounts = tuple[int, ...]


@dataclass(frozen=True)
class _Options:
    padding: int
    activation: int
    strides: Amounts
    dilation: Amounts

    @classmethod
    def of(cls, operator: Operator) -> _Options:
        def read(options: tflite.Conv3DOptions) -> _Options:
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
    how = _Options.of(operator)
    data, weight, *bias = operands(operator, 2, 3)
    taps = np.moveaxis(_weight(weight, data), 4, 0)
    shape = _checked(operator, data, taps, how, bias)
    low, high = how.padding_of(data.shape[1:4], taps.shape[1:4])

    def emit(emitter: Emitter) -> ir.Value:
        volumes = _padded(emitter, emitter.value(data), low, high)
        total = _convolved(emitter, volumes, taps, how.strides, how.dilation, shape)
        return finished(emitter, total, bias, how.activation, shape)

    return emit


@imports_f32("CONV_3D_TRANSPOSE")
def _conv_3d_transpose(operator: Operator) -> Emission:
    """A convolution of the data with zeros between them, by the weights [D, H, W, O, I] from the last to the first."""
    how = _Options.of(operator)
    wanted, weight, data, *bias = operands(operator, 3, 4)
    taps = np.moveaxis(_weight(weight, data), 3, 0)
    shape = _checked(operator, data, taps, how, bias)
    require(integers(wanted, "output shape") == shape, f"output shape must be {list(shape)}")
    low, _ = how.padding_of(shape[1:4], taps.shape[1:4])
    window = [(taps.shape[1 + i] - 1) * how.dilation[i] for i in range(3)]
    before = tuple(window[i] - low[i] for i in range(3))
    # Behind the last element there are zeros already, one fewer than the stride.
    after = tuple(shape[1 + i] - before[i] + window[i] - data.shape[1 + i] * how.strides[i] for i in range(3))
    backwards = np.ascontiguousarray(taps[:, ::-1, ::-1, ::-1])

    def emit(emitter: Emitter) -> ir.Value:
        apart = _padded(emitter, _with_zeros(emitter, emitter.value(data), how.strides), before, after)
        total = _convolved(emitter, apart, backwards, (1, 1, 1), how.dilation, shape)
        return finished(emitter, total, bias, how.activation, shape)

    return emit


def _weight(weight: Tensor, data: Tensor) -> Array:
    require(weight.element == "f32", f"weight must be f32, but got {weight.element}")
    taps = constant(weight, "weight")
    ranks = (len(data.shape), taps.ndim)
    require(ranks == (_RANK, _RANK), f"input and weight must have 5 dimensions, but got {ranks[0]} and {ranks[1]}")
    return taps


def _checked(operator: Operator, data: Tensor, taps: Array, how: _Options, bias: list[Tensor]) -> Shape:
    """The shape of the output; `taps` are [O, D, H, W, I]."""
    shape = operator.outputs[0].shape
    require(len(shape) == _RANK, f"output must have 5 dimensions, but got {len(shape)}")
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


def _with_zeros(emitter: Emitter, data: ir.Value, strides: Amounts) -> ir.Value:
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


def _padded(emitter: Emitter, volumes: ir.Value, before: Sequence[int], after: Sequence[int]) -> ir.Value:
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
