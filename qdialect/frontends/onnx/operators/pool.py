"""MaxPool, AveragePool, GlobalAveragePool and their QLinear forms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qdialect.dialect import Conv2DOp, MaxPool2DOp, MeanOp, RequantizeOp
from qdialect.frontends.common import require
from qdialect.frontends.onnx.emitter import Emitter, Placed, Value
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.operators.window import Window, window_of
from qdialect.frontends.onnx.tensors import EIGHT_BIT, Parameters, Plan, Quantized, Real, Tensor, mapping
from qdialect.quant_math import Multiplier, Rounding, real_multiplier


def _source_of(source: Quantized) -> Quantized:
    element = source.parameters.element
    require(element in EIGHT_BIT, f"input must be i8 or ui8, but got {element}")
    require(len(source.shape) == 4, f"input must have 4 dimensions, but got {len(source.shape)}")
    return source


def _window(call: Call, source: Quantized) -> Window:
    kernel = tuple(call.attribute("kernel_shape", [0, 0]))
    holds = len(kernel) == 2 and min(kernel) >= 1
    require(holds, f"kernel_shape must be 2 integers of at least 1, but got {list(kernel)}")
    window = window_of(call, source.shape[2:], kernel)
    require(set(window.dilation) == {1}, f"dilations must be 1, but got {list(window.dilation)}")
    return window


@imports("MaxPool")
def _max_pool(call: Call) -> Tensor:
    """The largest code is the code of the largest number."""
    call.count(1)
    source = _source_of(call.quantized(0))
    window, to = _window(call, source), source.parameters
    for pad, extent in zip(window.padding, window.kernel * 2, strict=True):
        require(pad < extent, f"pads must be less than the kernel's {extent}, but got {pad}")

    def emit(emitter: Emitter) -> Placed:
        pooled = emitter.build(
            MaxPool2DOp,
            emitter.last(source.codes),
            element=to.element,
            kernel=window.kernel,
            strides=window.strides,
            padding=window.padding,
            output_min=to.range[0],
            output_max=to.range[1],
        )
        return pooled, True

    shape = (*source.shape[:2], *window.output)
    return source.with_codes(call.plan.compute(call.name, shape, to.element, emit))


@dataclass(frozen=True, eq=False)
class Average(Real):
    """Means of windows, the padding among them: sums, which a convolution with ones gives, scaled by s_x / (n * s_y).

    ONNX Runtime averages in float32, so its codes may differ by one step.
    """

    source: Quantized
    window: Window

    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        require(to.element in EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")
        before, window, channels = self.source.parameters, self.window, self.shape[1]
        share = {"input_scale": before.scale, "weight_scales": (1 / math.prod(window.kernel),)}

        def emit(emitter: Emitter) -> Placed:
            sums = emitter.build(
                Conv2DOp,
                emitter.last(self.source.codes),
                emitter.constant(np.ones((channels, *window.kernel, 1), dtype=np.int8)),
                element="i32",
                strides=window.strides,
                padding=window.padding,
                groups=channels,
                input_zero_point=before.zero_point,
                **share,
            )
            scaled = emitter.build(
                RequantizeOp,
                sums,
                element=to.element,
                output_scale=to.scale,
                output_zero_point=to.zero_point,
                axis=3,
                rounding=Rounding.F32_RNE_ZP_FIRST,
                multiplier=Multiplier.F32,
                **share,
            )
            return scaled, True

        return plan.compute(name, self.shape, to.element, emit)


def _average(call: Call, quantized: Quantized) -> Average:
    source = _source_of(quantized)
    window = _window(call, source)
    counts = call.attribute("count_include_pad", 0) != 0
    require(counts or not any(window.padding), "count_include_pad must be 1 where there is padding")
    return Average((*source.shape[:2], *window.output), source, window)


@imports("AveragePool")
def _average_pool(call: Call) -> Tensor:
    call.count(1)
    return _average(call, call.quantized(0))


@imports("com.microsoft.QLinearAveragePool")
def _qlinear_average_pool(call: Call) -> Tensor:
    call.count(4, 5)
    require(call.attribute("channels_last", 0) == 0, "channels_last must be 0")
    unit = _average(call, dequantized(call, 0, 1, 0))
    return unit.quantized(call.plan, call.name, parameters_of(call, 3, unit.source.codes.element))


@dataclass(frozen=True, eq=False)
class GlobalAverage(Real):
    """Means of whole images: i32 sums times ``s_x / (s_y * n)`` in float32, rounded to even, zero point last."""

    source: Quantized

    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        require(to.element in EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")
        before = self.source.parameters
        multiplier = _multiplier(before.scale, to.scale, math.prod(self.source.shape[2:]))

        def emit(emitter: Emitter) -> Placed:
            parameters = {**mapping(before, to), "rounding": Rounding.F32_RNE_ZP_LAST, "multiplier": multiplier}
            axes = tuple(range(1, len(self.shape) - 1))
            data = emitter.last(self.source.codes)
            return emitter.build(MeanOp, data, element=to.element, axes=axes, keep_dims=True, **parameters), True

        return plan.compute(name, self.shape, to.element, emit)


def _multiplier(input_scale: float, output_scale: float, count: int) -> Multiplier:
    """The way to form the multiplier that meets ONNX Runtime's, which divides once, by the product in float32."""
    wanted = np.float32(input_scale) / (np.float32(output_scale) * np.float32(count))
    ways = (Multiplier.F32, Multiplier.F64)
    found = [np.float32(real_multiplier(input_scale, [1.0], output_scale, way)[0] / count) for way in ways]
    return next((way for way, factor in zip(ways, found, strict=True) if factor == wanted), Multiplier.F32)


@imports("GlobalAveragePool")
def _global_average_pool(call: Call) -> Tensor:
    call.count(1)
    return _global(call.quantized(0))


@imports("com.microsoft.QLinearGlobalAveragePool")
def _qlinear_global_average_pool(call: Call) -> Tensor:
    call.count(4, 5)
    require(call.attribute("channels_last", 0) == 0, "channels_last must be 0")
    unit = _global(dequantized(call, 0, 1, 0))
    return unit.quantized(call.plan, call.name, parameters_of(call, 3, unit.source.codes.element))


def _global(source: Quantized) -> GlobalAverage:
    element = source.parameters.element
    require(element in EIGHT_BIT, f"input must be i8 or ui8, but got {element}")
    require(len(source.shape) >= 3, f"input must have at least 3 dimensions, but got {len(source.shape)}")
    return GlobalAverage((*source.shape[:2], *(1 for _ in source.shape[2:])), source)
