"""Conv, QLinearConv and ConvInteger: data NCL, NCHW or NCDHW, weights OIL, OIHW or OIDHW."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qdialect.dialect import Conv2DOp
from qdialect.frontends.common import Array, UnsupportedError, require
from qdialect.frontends.onnx.operators.contraction import bias_of, data_of
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of, zero_points_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.operators.run_time_zero_point import corrected, padded, run_time_zero_point
from qdialect.frontends.onnx.operators.window import window_of
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.contraction import Contraction
from qdialect.frontends.planning.convolution import Layer, attributes_of, check_groups
from qdialect.frontends.planning.tensors import EIGHT_BIT, Tensor
from qdialect.frontends.planning.weight import RunTimeWeight, ordered_weight, run_time_weight
from qdialect.frontends.planning.window import Window


@imports("Conv")
def _conv(call: Call) -> Tensor:
    call.count(2, 3)
    return _convolution(call, call.quantized(0), call.quantized(1), bias=2)


@imports("QLinearConv")
def _qlinear_conv(call: Call) -> Tensor:
    call.count(8, 9)
    qdq_group = _convolution(call, dequantized(call, 0, 1, 1), dequantized(call, 3, 4, 0), bias=8)
    return qdq_group.quantized(call.plan, call.name, parameters_of(call, 6, qdq_group.data.values.element))


@imports("ConvInteger")
def _conv_integer(call: Call) -> Tensor:
    call.count(2, 4)
    source = call.value(0)
    point = run_time_zero_point(call, 2, source)
    if point is None:
        return _convolution(call, integers(call, 0, 2), integers(call, 1, 3), bias=4).accumulators(call.plan, call.name)
    layer, window = _layer(call, Quantized(source.shape, source, (1.0,), (0,)), integers(call, 1, 3))
    weight = layer.weight
    if isinstance(weight, RunTimeWeight):
        raise UnsupportedError("weight must be constant where the zero point of the data is not")
    data = padded(call, source, point, window.before, window.after) if any(window.padding) else source
    unpadded = replace(
        layer,
        data=Quantized(data.shape, data, (1.0,), (0,)),
        attributes={**layer.attributes, "padding": (0, 0, 0, 0)},
    )
    zeros = (0,) * len(window.kernel)
    images = unpadded.over_volumes(call.plan, call.name, replace(window, before=zeros, after=zeros))
    sums = images.contraction((source.shape[0], weight.shape[0], *window.output), _bias(call, 4, layer))
    taps = weight.values.reshape(weight.shape[0], -1).astype(np.int64)
    channels = taps.sum(axis=1) - taps.shape[1] * np.array(weight.zero_points)
    return corrected(call, sums.accumulators(call.plan, call.name), point, channels)


def integers(call: Call, index: int, zero_point: int) -> Quantized:
    """Input `index` with the zero points of input `zero_point` and the scale 1."""
    value = call.value(index)
    require(value.element in EIGHT_BIT, f"input {index} must be {' or '.join(EIGHT_BIT)}, but got {value.element}")
    count = call.constant(zero_point).size if call.optional(zero_point) is not None else 1
    zero_points, element = zero_points_of(call, zero_point, count, value.element)
    require(element == value.element, f"zero point must be {value.element}, but got {element}")
    return Quantized(value.shape, value, (1.0,) * count, zero_points)


def _convolution(call: Call, source: Quantized, weights: Quantized, bias: int) -> Contraction:
    layer, window = _layer(call, source, weights)
    shape = (source.shape[0], layer.weight.shape[0], *window.output)
    return layer.over_volumes(call.plan, call.name, window).contraction(shape, _bias(call, bias, layer))


def _bias(call: Call, index: int, layer: Layer) -> Array | None:
    return bias_of(call, index, layer.data, layer.weight.scales, layer.weight.shape[0])


def _layer(call: Call, source: Quantized, weights: Quantized) -> tuple[Layer, Window]:
    data, rank = data_of(source), len(source.shape)
    require(rank in (3, 4, 5), f"input must have 3 to 5 dimensions, but got {rank}")
    is_known = weights.values.data is not None
    weight = ordered_weight(weights, (0, *range(2, rank), 1), 0) if is_known else run_time_weight(weights, rank)
    groups: int = call.attribute("group", 1)
    check_groups(data.shape[1], weight.shape, groups)
    window = window_of(call, data.shape[2:], weight.shape[1:-1])
    return Layer(Conv2DOp, data, weight, attributes_of(window, groups)), window
