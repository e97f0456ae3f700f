"""conv1d and conv2d: data NCL or NCHW, weights OIL or OIHW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import Conv2DOp, DynamicConv2DOp, F32Conv2DOp, PadOp
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
    return convolution(call, 4 if "conv2d" in call.node.kind else 3)


def convolution(call: Call, rank: int) -> Result:
    """A convolution of data of `rank` dimensions."""
    require(rank in (3, 4), f"input must have 3 or 4 dimensions, but got {rank}")
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
