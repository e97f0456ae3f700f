"""conv1d, conv2d and conv_transpose2d: data NCL or NCHW, weights OIL, OIHW or IOHW."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import Conv2DOp, ConvTranspose2DOp, DynamicConv2DOp, F32Conv2DOp, PadOp
from qdialect.frontends.common import Shape, require
from qdialect.frontends.planning.convolution import Layer, attributes_of, check_groups, from_image, image, kernels
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.window import Window
from qdialect.frontends.torch.operators.contraction import bias_of, data_of, weight_of
from qdialect.frontends.torch.operators.dynamic_contraction import DynamicContraction, dynamic_data_of, is_dynamic
from qdialect.frontends.torch.operators.f32_contraction import F32Contraction, f32_weight, is_integer
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.operators.windows import window_of


@imports("conv2d.default", "conv2d.padding", "conv1d.default", "conv1d.padding")
def _convolution(call: Call) -> Result:
    rank = 4 if "conv2d" in call.node.kind else 3
    if is_dynamic(call, "input", "weight"):
        return _dynamic_convolution(call, rank)
    if not is_integer(call, "input", "weight"):
        return _f32_convolution(call, rank)
    data, weight = data_of(call, "input"), weight_of(call, "weight", (0, *range(2, rank), 1), 0)
    window, groups = _window(call, data.shape, weight.values.shape, rank)
    channels = len(weight.values)
    bias = bias_of(call, "bias", channels)
    layer = Layer(Conv2DOp, data, weight, attributes_of(window, groups))
    return layer.contraction((data.shape[0], channels, *window.output), bias, call.name)


def _dynamic_convolution(call: Call, rank: int) -> Result:
    data, weight = dynamic_data_of(call, "input"), weight_of(call, "weight", (0, *range(2, rank), 1), 0)
    window, groups = _window(call, data.shape, weight.values.shape, rank)
    is_padded = any(window.padding)
    if not data.parameters.is_of_tensor or (is_padded and data.source is None):
        return _f32_convolution(call, rank)
    channels = len(weight.values)
    shape = (data.shape[0], channels, *window.output)
    return DynamicContraction(
        shape,
        DynamicConv2DOp,
        data,
        is_padded,
        weight,
        kernels(weight.values),
        bias_of(call, "bias", channels),
        _unpadded_attributes(window, groups),
        _padded_image(window),
        from_image(shape),
        name=call.name,
    )


def _f32_convolution(call: Call, rank: int) -> Result:
    data, weight = call.f32("input"), f32_weight(call, "weight")
    require(weight is not None, "argument 'weight' must be constant")
    assert weight is not None
    require(weight.ndim == rank, f"weight must have {rank} dimensions, but got {weight.ndim}")
    last = np.ascontiguousarray(weight.transpose((0, *range(2, rank), 1)))
    window, groups = _window(call, data.shape, last.shape, rank)
    shape = (data.shape[0], len(last), *window.output)
    padded, attributes = _padded_image(window), _unpadded_attributes(window, groups)

    def contract(emitter: Emitter, values: tuple[Value, ...]) -> ir.Value:
        taps = emitter.constant(kernels(last))
        return emitter.build(F32Conv2DOp, padded(emitter, values[0]), taps, element="f32", **attributes)

    bias = bias_of(call, "bias", len(last))
    return F32Contraction(shape, (data,), bias, contract, from_image(shape), name=call.name)


def _unpadded_attributes(window: Window, groups: int) -> dict[str, Any]:
    attributes = attributes_of(window, groups)
    del attributes["padding"]
    return attributes


def _padded_image(window: Window) -> Callable[[Emitter, Value], ir.Value]:
    """Gives the image of f32 values with zeros around it; itself where nothing is padded."""
    flat = window.two_dimensional()

    def padded(emitter: Emitter, value: Value) -> ir.Value:
        data = image(emitter, value)
        if not any(flat.padding):
            return data
        low, high = ((0, *sides, 0) for sides in (flat.before, flat.after))
        return emitter.build(PadOp, data, element="f32", low=low, high=high, value=0)

    return padded


def _window(call: Call, data: Shape, weight: Shape, rank: int) -> tuple[Window, int]:
    """The window of weights [O, ..., C / groups] over the data, and the number of groups."""
    require(len(data) == rank, f"input must have {rank} dimensions, but got {len(data)}")
    (groups,) = call.integers("groups", 1)
    check_groups(data[1], weight, groups)
    return window_of(call, data[2:], weight[1:-1], dilated=True), groups


@imports("conv_transpose2d.input")
def _transposed_convolution(call: Call) -> Result:
    """Weights are IOHW: [C, O / groups, KH, KW]; with scales by channel, which lie along O, `groups` must be 1."""
    require(
        is_integer(call, "input", "weight"),
        "input and weight must be dequantized quantized values, the weight's constant",
    )
    data = data_of(call, "input")
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    weight = weight_of(call, "weight", (0, 1, 2, 3), 1)
    (groups,) = call.integers("groups", 1)
    inputs, share, *kernel = weight.values.shape
    require(inputs == data.shape[1], f"weight must have {data.shape[1]} inputs, but got {inputs}")
    require(groups >= 1 and inputs % groups == 0, f"groups must divide {inputs} channels, but got {groups}")
    require(groups == 1 or len(weight.scales) == 1, "weight must have one scale where there are groups")
    apart = weight.values.reshape(groups, inputs // groups, share, *kernel)
    taps = np.ascontiguousarray(apart.transpose(0, 2, 3, 4, 1).reshape(-1, *kernel, inputs // groups))
    strides, dilation, extra, padding = (
        call.integers(name, 2) for name in ("stride", "dilation", "output_padding", "padding")
    )
    smallest = min(*strides, *dilation, *(amount + 1 for amount in (*extra, *padding)))
    require(smallest >= 1, "stride and dilation must be at least 1 and padding at least 0")

    attributes = {
        "strides": strides,
        "padding": (*padding, *padding),
        "output_padding": extra,
        "dilation": dilation,
        "groups": groups,
    }
    layer = Layer(ConvTranspose2DOp, data, replace(weight, values=taps), attributes)
    return layer.contraction(call.node.outputs[0].shape, bias_of(call, "bias", groups * share), call.name)
