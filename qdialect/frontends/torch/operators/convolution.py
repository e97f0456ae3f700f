"""conv1d and conv2d: data NCL or NCHW, weights OIL or OIHW."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import Conv2DOp, DynamicConv2DOp, F32Conv2DOp, PadOp
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.window import Window
from qdialect.frontends.torch.operators.contraction import Contraction, bias_of, data_of, weight_of
from qdialect.frontends.torch.operators.dynamic_contraction import DynamicContraction, dynamic_data_of, is_dynamic
from qdialect.frontends.torch.operators.f32_contraction import F32Contraction, f32_weight, is_integer
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.operators.windows import window_of


@dataclass(frozen=True)
class _Layer:
    """What a convolution is over data [N, C, ...] with weights [O, ..., C / groups], at most two dimensions between."""

    batch: int
    size: Shape
    channels: tuple[int, int]
    window: Window
    groups: int

    @property
    def shape(self) -> Shape:
        """Of the result."""
        return (self.batch, self.channels[1], *self.window.output)

    def image(self, emitter: Emitter, value: Value) -> ir.Value:
        """The data, channels last; a one-dimensional signal is an image of height 1."""
        return emitter.reshape(emitter.last(value), (self.batch, *(1, *self.size)[-2:], self.channels[0]))

    def padded_image(self, emitter: Emitter, value: Value) -> ir.Value:
        """The image of f32 values with zeros around it; itself where nothing is padded."""
        image, flat = self.image(emitter, value), self.window.two_dimensional()
        if not any(flat.padding):
            return image
        low, high = ((0, *sides, 0) for sides in (flat.before, flat.after))
        return emitter.build(PadOp, image, element="f32", low=low, high=high, value=0)

    def attributes(self) -> dict[str, Any]:
        """Those that convolutions of integers and of f32 values have in common."""
        flat = self.window.two_dimensional()
        return {"strides": flat.strides, "dilation": flat.dilation, "groups": self.groups}

    def finish(self, emitter: Emitter, value: ir.Value) -> Emitted:
        """The result of an image as that of the data."""
        return emitter.reshape(value, (self.batch, *self.window.output, self.channels[1])), True


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
    layer = _layer(call, data.shape, weight.values.shape, rank)

    def accumulate(emitter: Emitter, bias: Array | None) -> ir.Value:
        return emitter.build(
            Conv2DOp,
            layer.image(emitter, data.values),
            emitter.constant(_square(weight.values)),
            None if bias is None else emitter.constant(bias),
            element="i32",
            padding=layer.window.two_dimensional().padding,
            input_scale=data.scales[0],
            input_zero_point=data.zero_points[0],
            weight_scales=weight.scales,
            weight_zero_points=weight.zero_points,
            **layer.attributes(),
        )

    bias = bias_of(call, "bias", layer.channels[1])
    return Contraction(layer.shape, call.name, data, weight, bias, accumulate, layer.finish)


def _dynamic_convolution(call: Call, rank: int) -> Result:
    data, weight = dynamic_data_of(call, "input"), weight_of(call, "weight", (0, *range(2, rank), 1), 0)
    layer = _layer(call, data.shape, weight.values.shape, rank)
    is_padded = any(layer.window.padding)
    if not data.parameters.is_of_tensor or (is_padded and data.source is None):
        return _f32_convolution(call, rank)
    return DynamicContraction(
        layer.shape,
        call.name,
        DynamicConv2DOp,
        data,
        is_padded,
        weight,
        _square(weight.values),
        bias_of(call, "bias", layer.channels[1]),
        layer.attributes(),
        layer.padded_image,
        layer.finish,
    )


def _f32_convolution(call: Call, rank: int) -> Result:
    data, weight = call.f32("input"), f32_weight(call, "weight")
    require(weight is not None, "argument 'weight' must be constant")
    assert weight is not None
    require(weight.ndim == rank, f"weight must have {rank} dimensions, but got {weight.ndim}")
    last = np.ascontiguousarray(weight.transpose((0, *range(2, rank), 1)))
    layer = _layer(call, data.shape, last.shape, rank)

    def contract(emitter: Emitter, values: tuple[Value, ...]) -> ir.Value:
        image = layer.padded_image(emitter, values[0])
        kernels = emitter.constant(_square(last))
        return emitter.build(F32Conv2DOp, image, kernels, element="f32", **layer.attributes())

    bias = bias_of(call, "bias", layer.channels[1])
    return F32Contraction(layer.shape, call.name, (data,), bias, contract, layer.finish)


def _layer(call: Call, data: Shape, weight: Shape, rank: int) -> _Layer:
    require(len(data) == rank, f"input must have {rank} dimensions, but got {len(data)}")
    channels, *kernel, depth = weight
    (groups,) = call.integers("groups", 1)
    found = f"input must have {groups} * {depth} channels, but got {data[1]}"
    require(groups >= 1 and data[1] == groups * depth, found)
    require(channels % groups == 0, f"output channels must be a multiple of {groups}, but got {channels}")
    window = window_of(call, data[2:], tuple(kernel), dilated=True)
    return _Layer(data[0], data[2:], (data[1], channels), window, groups)


def _square(weight: Array) -> Array:
    """One-dimensional weights become those of images of height 1."""
    return weight if weight.ndim == 4 else weight[:, np.newaxis]
