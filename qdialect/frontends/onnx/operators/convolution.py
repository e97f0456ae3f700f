"""Conv, ConvTranspose, QLinearConv and ConvInteger: data NCHW or NCL, weights OIHW or OIL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import Conv2DOp, PadOp
from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.emitter import Emitter, Placed
from qdialect.frontends.onnx.operators.contraction import Contraction, Weight, bias_of, data_of, weight_of
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of, zero_points_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.operators.window import Window, declared_window, window_of
from qdialect.frontends.onnx.tensors import Quantized, Tensor


@imports("Conv")
def _conv(call: Call) -> Tensor:
    call.count(2, 3)
    return _convolution(call, call.quantized(0), call.quantized(1), bias=2)


@imports("QLinearConv")
def _qlinear_conv(call: Call) -> Tensor:
    call.count(8, 9)
    unit = _convolution(call, dequantized(call, 0, 1, 1), dequantized(call, 3, 4, 0), bias=8)
    return unit.quantized(call.plan, call.name, parameters_of(call, 6, unit.data.codes.element))


@imports("ConvInteger")
def _conv_integer(call: Call) -> Tensor:
    call.count(2, 4)
    unit = _convolution(call, integers(call, 0, 2), integers(call, 1, 3), bias=4)
    return unit.accumulators(call.plan, call.name)


def integers(call: Call, index: int, zero_point: int) -> Quantized:
    """Input `index` with the zero points of input `zero_point` and the scale 1."""
    value = call.codes(index)
    count = call.constant(zero_point).size if call.optional(zero_point) is not None else 1
    zero_points, element = zero_points_of(call, zero_point, count, value.element)
    require(element == value.element, f"zero point must be {value.element}, but got {element}")
    return Quantized(value.shape, value, (1.0,) * count, zero_points)


def _convolution(call: Call, source: Quantized, weights: Quantized, bias: int) -> Contraction:
    data, rank = data_of(source), len(source.shape)
    require(rank in (3, 4), f"input must have 3 or 4 dimensions, but got {rank}")
    weight = weight_of(weights, (0, *range(2, rank), 1), 0)
    groups: int = call.attribute("group", 1)
    channels, depth = weight.codes.shape[0], weight.codes.shape[-1]
    found = f"input must have {groups} * {depth} channels, but got {data.shape[1]}"
    require(groups >= 1 and data.shape[1] == groups * depth, found)
    require(channels % groups == 0, f"output channels must be a multiple of {groups}, but got {channels}")
    window = window_of(call, data.shape[2:], weight.codes.shape[1:-1])
    values = bias_of(call, bias, data, weight, channels)
    return _Layer(data, weight, values, window, groups).contraction((data.shape[0], channels, *window.output))


@dataclass(frozen=True)
class _Layer:
    data: Quantized
    weight: Weight
    bias: Any
    window: Window
    groups: int
    stuffing: tuple[int, int] = (1, 1)
    """A transposed convolution is one of data with this many cells, all but the first zero, for each cell."""

    def contraction(self, shape: Shape) -> Contraction:
        def finish(emitter: Emitter, value: ir.Value) -> Placed:
            last = (shape[0], *shape[2:], shape[1])
            return emitter.reshape(value, last), True

        return Contraction(shape, self.data, self.weight, self.accumulate, finish, axis=3, model_axis=1)

    def accumulate(self, emitter: Emitter) -> ir.Value:
        batch, channels, *size = self.data.shape
        height, width = (1, *size)[-2:]
        data = emitter.reshape(emitter.last(self.data.codes), (batch, height, width, channels))
        codes = self.weight.codes
        squares = codes if codes.ndim == 4 else codes[:, np.newaxis]
        window = self.window.two_dimensional()
        return emitter.build(
            Conv2DOp,
            self._stuffed(emitter, data),
            emitter.constant(squares),
            None if self.bias is None else emitter.constant(self.bias),
            element="i32",
            strides=window.strides,
            padding=window.padding,
            dilation=window.dilation,
            groups=self.groups,
            input_scale=self.data.scales[0],
            input_zero_point=self.data.zero_points[0],
            weight_scales=self.weight.scales,
            weight_zero_points=self.weight.zero_points,
        )

    def _stuffed(self, emitter: Emitter, data: ir.Value) -> ir.Value:
        """Zeros between the cells: dimensions of extent 1 grow by them and are merged with the ones before."""
        if self.stuffing == (1, 1):
            return data
        batch, channels, *size = self.data.shape
        height, width = (1, *size)[-2:]
        down, across = self.stuffing
        apart = emitter.reshape(data, (batch, height, 1, width, 1, channels))
        high = (0, 0, down - 1, 0, across - 1, 0)
        value, element = self.data.zero_points[0], self.data.codes.element
        grown = emitter.build(PadOp, apart, element=element, low=(0,) * 6, high=high, value=value)
        return emitter.reshape(grown, (batch, height * down, width * across, channels))


@imports("ConvTranspose")
def _conv_transpose(call: Call) -> Tensor:
    """A convolution, with the kernel turned around, of data with stride - 1 zeros after each cell.

    ONNX Runtime computes it in float32, so its codes may differ by one step.
    """
    call.count(2, 3)
    data, weights = data_of(call.quantized(0)), call.quantized(1)
    rank = len(data.shape)
    require(rank in (3, 4), f"input must have 3 or 4 dimensions, but got {rank}")
    groups: int = call.attribute("group", 1)
    weight = _turned(weights, rank, groups, data.shape[1])
    window = declared_window(call, data.shape[2:], weight.codes.shape[1:-1])
    require(call.attribute("auto_pad", "NOTSET") in ("NOTSET", "VALID"), "auto_pad must be NOTSET")
    require("output_shape" not in call.node.attributes, "attribute 'output_shape' is not supported")
    extra = tuple(call.attribute("output_padding", [0] * (rank - 2)))
    fits = len(extra) == rank - 2 and min(extra) >= 0
    require(fits, f"output_padding must be {rank - 2} integers of at least 0, but got {list(extra)}")
    transposed = window.transposed(data.shape[2:], extra)
    down, across = (1, *window.strides)[-2:]
    channels = weight.codes.shape[0]
    values = bias_of(call, 2, data, weight, channels)
    layer = _Layer(data, weight, values, transposed, groups, (down, across))
    return layer.contraction((data.shape[0], channels, *transposed.output))


def _turned(weights: Quantized, rank: int, groups: int, channels: int) -> Weight:
    """[C, O / g, KH, KW] as [O, KH, KW, C / g] with the kernel's dimensions reversed."""
    require(len(weights.scales) == 1, f"weight must have one scale, but got {len(weights.scales)}")
    weight = weight_of(weights, tuple(range(rank)), 0)
    require(weight.codes.shape[0] == channels, f"weight must have {channels} inputs, but got {weight.codes.shape[0]}")
    require(groups >= 1 and channels % groups == 0, f"group must divide {channels} channels, but got {groups}")
    kernel = weight.codes.shape[2:]
    apart = weight.codes.reshape(groups, channels // groups, -1, *kernel)
    turned = np.flip(apart, axis=tuple(range(3, 3 + len(kernel))))
    last = np.moveaxis(turned, 1, -1).reshape(-1, *kernel, channels // groups)
    return Weight(np.ascontiguousarray(last), weight.scales, weight.zero_points)
