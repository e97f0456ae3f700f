"""CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect import Conv2DOp, ConvTranspose2DOp, DenseOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.activation_range import activation_range
from qdialect.frontends.tflite.operators.checks import (
    check_rescale,
    check_scales,
    constant,
    dense_options,
    eight_bit,
    integers,
    operands,
)
from qdialect.frontends.tflite.operators.i16.checks import sixteen_bit
from qdialect.frontends.tflite.operators.i16.contraction import I16Contraction, i16_contraction
from qdialect.frontends.tflite.operators.product import Product, transposed
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.operators.window import explicit_padding
from qdialect.frontends.tflite.reader import read_options
from qdialect.profiles import TFLITE
from qdialect.quant_math import Multiplier, Rounding

_OUTPUT_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 0}


@dataclass(frozen=True)
class _Contraction:
    """The tensors of a node, checked; `weight` has the output channels first."""

    data: Tensor
    output: Tensor
    weight: NDArray[Any]
    weight_scales: tuple[float, ...]
    weight_zero_points: tuple[int, ...]
    bias: NDArray[Any] | None
    rounding: Rounding
    multiplier: Multiplier
    bounds: tuple[int, int]

    def accumulate(self, emitter: Emitter, op_class: type[Any], data: ir.Value, **attributes: Any) -> ir.Value:
        bias = None if self.bias is None else emitter.constant(self.bias)
        return emitter.build(
            op_class,
            data,
            emitter.constant(self.weight),
            bias,
            element="i32",
            input_scale=self.data.scale,
            input_zero_point=self.data.zero_point,
            weight_scales=self.weight_scales,
            weight_zero_points=self.weight_zero_points,
            **attributes,
        )

    def finish(self, emitter: Emitter, acc: ir.Value, axis: int) -> ir.Value:
        requantized = emitter.requantize(
            acc,
            self.output,
            self.data.scale,
            self.multiplier,
            rounding=self.rounding,
            weight_scales=self.weight_scales,
            axis=axis,
        )
        return emitter.clip(requantized, self.bounds)


def _contraction(
    operator: Operator, tensors: Sequence[Tensor], activation: int, rank: int
) -> _Contraction | I16Contraction:
    """`tensors` are data, weight and perhaps bias."""
    data, weight, *rest = tensors
    if data.element == "i16":
        bounds = activation_range(activation, sixteen_bit(operator.outputs[0], "output"))
        return i16_contraction(operator, tensors, rank, _OUTPUT_AXIS[operator.kind], bounds)
    output = eight_bit(operator.outputs[0], "output")
    eight_bit(data, "input")
    types = (data.element, weight.element, output.element)
    require(len(set(types)) == 1, f"input, weight and output must be all i8 or all ui8, but got {', '.join(types)}")
    require(len(weight.shape) == rank, f"weight must have {rank} dimensions, but got {len(weight.shape)}")
    values, axis = constant(weight, "weight"), _OUTPUT_AXIS[operator.kind]
    channels = weight.shape[axis]
    _check_weight_quantization(operator, weight, axis)
    rounding, multiplier = _arithmetic(operator, weight)
    check_rescale(data.scale, weight.scales, output.scale, multiplier)
    bias = _bias(rest[0], channels) if rest else None
    zero_points = weight.zero_points if len(set(weight.zero_points)) > 1 else weight.zero_points[:1]
    channels_first = np.moveaxis(values, axis, 0)
    bounds = activation_range(activation, output)
    return _Contraction(data, output, channels_first, weight.scales, zero_points, bias, rounding, multiplier, bounds)


def _check_weight_quantization(operator: Operator, weight: Tensor, axis: int) -> None:
    check_scales(weight, "weight")
    if len(weight.scales) > 1:
        require(weight.axis == axis, f"weight scales must lie along axis {axis}, but got {weight.axis}")
        require(weight.element == "i8", f"weight with scales by channel must be i8, but got {weight.element}")
    # These kernels ignore the zero point; what another value would mean is nowhere defined.
    symmetric = weight.element == "i8" and (operator.kind != "FULLY_CONNECTED" or len(weight.scales) > 1)
    require(not symmetric or not any(weight.zero_points), "i8 weight must have zero point 0")


def _arithmetic(operator: Operator, weight: Tensor) -> tuple[Rounding, Multiplier]:
    """What the reference kernels do, which is not the same everywhere.

    FULLY_CONNECTED rounds once, ties away from zero, by a factor evaluated in double.  Convolutions round twice; those
    of `ui8` take the product of the scales in float32, those of `i8`, whose factors are by channel, in double.
    """
    if operator.kind == "FULLY_CONNECTED":
        return Rounding.FIXED64_NEAREST, Multiplier.F64
    return TFLITE.rounding, TFLITE.multiplier if weight.element == "i8" else Multiplier.F32_PRODUCT


def _bias(bias: Tensor, channels: int) -> NDArray[Any]:
    require(bias.element == "i32", f"bias must be i32, but got {bias.element}")
    values = constant(bias, "bias")
    require(values.size == channels, f"bias must have {channels} entries, but got {values.size}")
    return values.reshape(channels)


@imports("CONV_2D")
def _conv_2d(operator: Operator) -> Emission:
    def read(options: tflite.Conv2DOptions) -> tuple[int, int, tuple[int, int], tuple[int, int]]:
        strides = (options.StrideH(), options.StrideW())
        dilation = (options.DilationHFactor(), options.DilationWFactor())
        return options.Padding(), options.FusedActivationFunction(), strides, dilation

    padding, activation, strides, dilation = read_options(operator, tflite.Conv2DOptions, read)
    node = _contraction(operator, operands(operator, 2, 3), activation, rank=4)
    depth = node.weight.shape[3]
    require(depth >= 1 and len(node.data.shape) == 4, "input must have 4 dimensions and the weight a depth")
    return _convolution(node, padding, strides, dilation, groups=node.data.shape[3] // depth)


@imports("DEPTHWISE_CONV_2D")
def _depthwise_conv_2d(operator: Operator) -> Emission:
    def read(options: tflite.DepthwiseConv2DOptions) -> tuple[int, int, tuple[int, int], tuple[int, int]]:
        strides = (options.StrideH(), options.StrideW())
        dilation = (options.DilationHFactor(), options.DilationWFactor())
        return options.Padding(), options.FusedActivationFunction(), strides, dilation

    padding, activation, strides, dilation = read_options(operator, tflite.DepthwiseConv2DOptions, read)
    # [1, KH, KW, OC] has become [OC, 1, KH, KW]: the depth of one goes last.
    node = _contraction(operator, operands(operator, 2, 3), activation, rank=4)
    require(node.weight.shape[1] == 1, f"weight must have a first dimension of 1, but got {node.weight.shape[1]}")
    require(len(node.data.shape) == 4, f"input must have 4 dimensions, but got {len(node.data.shape)}")
    last = replace(node, weight=np.moveaxis(node.weight, 1, 3))
    return _convolution(last, padding, strides, dilation, groups=node.data.shape[3])


def _convolution(
    node: _Contraction | I16Contraction, padding: int, strides: tuple[int, int], dilation: tuple[int, int], groups: int
) -> Emission:
    size, window = node.data.shape[1:3], node.weight.shape[1:3]
    explicit = explicit_padding(padding, (size[0], size[1]), (window[0], window[1]), strides, dilation)

    def emit(emitter: Emitter) -> ir.Value:
        data = emitter.value(node.data)
        attributes = {"strides": strides, "padding": explicit, "dilation": dilation, "groups": groups}
        return node.finish(emitter, node.accumulate(emitter, Conv2DOp, data, **attributes), axis=3)

    return emit


@imports("TRANSPOSE_CONV")
def _transpose_conv(operator: Operator) -> Emission:
    """The padding is that of the convolution of which the output would be the input (TFLite transpose_conv.cc)."""

    def read(options: tflite.TransposeConvOptions) -> tuple[int, int, tuple[int, int]]:
        return options.Padding(), options.FusedActivationFunction(), (options.StrideH(), options.StrideW())

    padding, activation, strides = read_options(operator, tflite.TransposeConvOptions, read)
    shape, weight, data, *bias = operands(operator, 3, 4)
    node = _contraction(operator, (data, weight, *bias), activation, rank=4)
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    depth = weight.shape[3]
    require(data.shape[3] == depth, f"input must have {depth} channels, but got {data.shape[3]}")
    output = node.output.shape
    require(integers(shape, "output shape") == output, f"output shape must be {list(output)}")
    require(len(output) == 4, f"output must have 4 dimensions, but got {len(output)}")
    window = (weight.shape[1], weight.shape[2])
    top, left, *_ = explicit_padding(padding, (output[1], output[2]), window, strides, (1, 1))
    full = [(data.shape[1 + i] - 1) * strides[i] + window[i] for i in range(2)]
    # What of the full extent lies behind the output is cropped; what lies behind it in the output holds the bias.
    rests = [full[i] - before - output[1 + i] for i, before in enumerate((top, left))]
    cropped, extra = [max(rest, 0) for rest in rests], [max(-rest, 0) for rest in rests]
    attributes = {"strides": strides, "padding": (top, left, *cropped), "output_padding": tuple(extra)}

    def emit(emitter: Emitter) -> ir.Value:
        acc = node.accumulate(emitter, ConvTranspose2DOp, emitter.value(node.data), **attributes)
        return node.finish(emitter, acc, axis=3)

    return emit


@imports("FULLY_CONNECTED")
def _fully_connected(operator: Operator) -> Emission:
    activation, _ = dense_options(operator)
    data, weight, *bias = operands(operator, 2, 3)
    depth, elements = weight.shape[1], math.prod(data.shape)
    require(weight.data is not None or data.element != "i16", "weight of an i16 input must be constant")
    if weight.data is None:
        return _fully_connected_at_run_time(data, weight, bias, operator.outputs[0], activation)
    node = _contraction(operator, (data, weight, *bias), activation, rank=2)

    def emit(emitter: Emitter) -> ir.Value:
        rows = emitter.reshape(emitter.value(node.data), (elements // depth, depth))
        result = node.finish(emitter, node.accumulate(emitter, DenseOp, rows), axis=1)
        # With keep_num_dims the output has the input's leading dimensions.
        return emitter.reshape(result, node.output.shape)

    return emit


def _fully_connected_at_run_time(
    data: Tensor, weight: Tensor, bias: Sequence[Tensor], output: Tensor, activation: int
) -> Emission:
    channels, depth = weight.shape
    node = Product(data, weight, output, Rounding.FIXED64_NEAREST, Multiplier.F64)
    values = _bias(bias[0], channels) if bias else None
    bounds = activation_range(activation, output)

    def emit(emitter: Emitter) -> ir.Value:
        rows = emitter.reshape(emitter.value(data), (math.prod(data.shape) // depth, depth))
        start = None if values is None else emitter.constant(values)
        result = node.emit(emitter, rows, transposed(emitter, emitter.value(weight)), start)
        return emitter.reshape(emitter.clip(result, bounds), output.shape)

    return emit
