"""FULLY_CONNECTED and convolutions of float32 data and i8 weights: the data are quantized when the network runs.

A fully connected layer quantizes each row by itself, a convolution each image, or each pixel where XNNPACK's delegate
takes it as the product of a matrix.  Padding is zero, which a zero point stands for exactly and which every range
holds, so it is added before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect import (
    DynamicConv2DOp,
    DynamicDenseOp,
    PadOp,
)
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import require
from qdialect.frontends.slices import Slice, take_slices
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Shape, Tensor
from qdialect.frontends.tflite.operators.activation_range import f32_bounds
from qdialect.frontends.tflite.operators.checks import check_scales, constant, dense_options, operands
from qdialect.frontends.tflite.operators.f32 import F32Builder
from qdialect.frontends.tflite.operators.registry import Emission, imports_hybrid
from qdialect.frontends.tflite.operators.run_time_ranges import asymmetric, quantizer_of
from qdialect.frontends.tflite.operators.window import explicit_padding
from qdialect.frontends.tflite.reader import read_options

_MAX_IMAGES = 64


def _weights(weight: Tensor, rank: int, axis: int) -> NDArray[Any]:
    """The constant i8 weights, output channels first, which have scales for these and no zero points."""
    taps = constant(weight, "weight")
    require(taps.ndim == rank, f"weight must have {rank} dimensions, but got {taps.ndim}")
    check_scales(weight, "weight")
    fits = len(weight.scales) == 1 or weight.axis == axis
    require(fits, f"weight scales must lie along axis {axis}, but got {weight.axis}")
    require(not any(weight.zero_points), "i8 weight must have zero point 0")
    return np.moveaxis(taps, axis, 0)


def _bias(bias: list[Tensor], channels: int) -> Tensor | None:
    for tensor in bias:
        require(tensor.element == "f32", f"bias must be f32, but got {tensor.element}")
        found = math.prod(tensor.shape)
        require(found == channels, f"bias must have {channels} entries, but got {found}")
    return bias[0] if bias else None


@imports_hybrid("FULLY_CONNECTED")
def _fully_connected(operator: Operator) -> Emission:
    """``bias + float32(sum) * (scale * weight_scale)`` of each row."""
    activation, is_asymmetric = dense_options(operator)
    data, weight, *rest = operands(operator, 2, 3)
    matrix = _weights(weight, 2, 0)
    f32_bounds(activation)
    channels, depth = matrix.shape
    bias, count = _bias(rest, channels), math.prod(data.shape) // depth

    def emit(emitter: Emitter) -> ir.Value:
        rows = emitter.reshape(emitter.value(data), (count, depth))
        row = quantizer_of(emitter, is_asymmetric=is_asymmetric)(emitter, rows, (1,), ())
        start = None if bias is None else emitter.reshape(emitter.value(bias), (channels,))
        parts = (row.values, emitter.constant(matrix), row.scale, row.zero_point, start)
        total = emitter.build(DynamicDenseOp, *parts, element="f32", weight_scales=weight.scales)
        total = F32Builder(emitter, (count, channels)).clamp(total, activation)
        return emitter.reshape(total, operator.outputs[0].shape)

    return emit


@dataclass(frozen=True)
class _Windows:
    padding: int
    activation: int
    strides: tuple[int, int]
    dilation: tuple[int, int]


@imports_hybrid("CONV_2D")
def _conv_2d(operator: Operator) -> Emission:
    def read(options: tflite.Conv2DOptions) -> _Windows:
        strides = (options.StrideH(), options.StrideW())
        dilation = (options.DilationHFactor(), options.DilationWFactor())
        return _Windows(options.Padding(), options.FusedActivationFunction(), strides, dilation)

    return _convolution(operator, read_options(operator, tflite.Conv2DOptions, read), 0)


@imports_hybrid("DEPTHWISE_CONV_2D")
def _depthwise_conv_2d(operator: Operator) -> Emission:
    def read(options: tflite.DepthwiseConv2DOptions) -> _Windows:
        strides = (options.StrideH(), options.StrideW())
        dilation = (options.DilationHFactor(), options.DilationWFactor())
        return _Windows(options.Padding(), options.FusedActivationFunction(), strides, dilation)

    return _convolution(operator, read_options(operator, tflite.DepthwiseConv2DOptions, read), 3)


def _convolution(operator: Operator, windows: _Windows, axis: int) -> Emission:
    """Every image has a scale of its own, and a zero point unless all channels' weights have the same scale."""
    data, weight, *rest = operands(operator, 2, 3)
    taps = _weights(weight, 4, axis)
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
    f32_bounds(windows.activation)
    bias = _bias(rest, channels)
    size, window = (data.shape[1], data.shape[2]), (taps.shape[1], taps.shape[2])
    top, left, bottom, right = explicit_padding(windows.padding, size, window, windows.strides, windows.dilation)
    border = {"low": (0, top, left, 0), "high": (0, bottom, right, 0), "value": 0}
    how: dict[str, Any] = {"strides": windows.strides, "dilation": windows.dilation, "groups": groups}
    # Depthwise kernels and those of one weight scale multiply by the product of both scales.
    how["scale_last"] = not (axis or is_single)

    def of_image(emitter: Emitter, image: ir.Value) -> ir.Value:
        padded = emitter.build(PadOp, image, element="f32", **border) if any((top, left, bottom, right)) else image
        # The delegate leaves depthwise convolutions.
        found = (asymmetric if axis else quantizer_of(emitter, is_asymmetric=not is_single))(
            emitter, padded, (0, 1, 2, 3), ((0, 0), (top, bottom), (left, right), (0, 0))
        )
        parts = (found.values, emitter.constant(taps), found.scale, found.zero_point)
        total = emitter.build(DynamicConv2DOp, *parts, None, element="f32", weight_scales=weight.scales, **how)
        s = F32Builder(emitter, shape_of(total.type))
        biased = total if bias is None else s("addf", total, emitter.reshape(emitter.value(bias), (channels,)))
        return s.clamp(biased, windows.activation)

    def of_pixels(emitter: Emitter) -> ir.Value:
        rows = emitter.reshape(emitter.value(data), (math.prod(data.shape[:3]), depth))
        found = quantizer_of(emitter, is_asymmetric=True)(emitter, rows, (1,), ())
        start = None if bias is None else emitter.reshape(emitter.value(bias), (channels,))
        parts = (found.values, emitter.constant(taps.reshape(channels, depth)), found.scale, found.zero_point, start)
        total = emitter.build(DynamicDenseOp, *parts, element="f32", weight_scales=weight.scales)
        total = F32Builder(emitter, shape_of(total.type)).clamp(total, windows.activation)
        return emitter.reshape(total, (*data.shape[:3], channels))

    def emit(emitter: Emitter) -> ir.Value:
        if emitter.is_delegated and axis == 0 and window == windows.strides == (1, 1) and groups == 1:
            return of_pixels(emitter)
        value = emitter.value(data)
        results = [of_image(emitter, _image(emitter, value, data.shape, index)) for index in range(images)]
        return results[0] if images == 1 else emitter.concatenate(results, 0)

    return emit


def _image(emitter: Emitter, value: ir.Value, shape: Shape, index: int) -> ir.Value:
    return take_slices(emitter, value, (Slice(index, 1, 1), *(Slice(0, 1, extent) for extent in shape[1:])))
