"""AveragePool, GlobalAveragePool and their QLinear forms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect.dialect import MeanOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import require
from qdialect.frontends.onnx.float_groups import GroupKernel
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.operators.window import pool_window
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.movement import Transposition, move_value
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, Tensor, mapping, quantize
from qdialect.frontends.planning.window import Window
from qdialect.frontends.planning.window_sums import window_sums
from qdialect.profiles import ORT
from qdialect.quant_math import Multiplier, real_multiplier

_COUNT_BYTES = np.dtype(np.int64).itemsize
# From i8 to the ui8 that stand for the same.
_OFFSET = 128


@dataclass(frozen=True, eq=False)
class Average(F32Tensor):
    """Means of windows of dequantized values: sums in row-major order, divided by the number of elements that count.

    Quantized as QLinearAveragePool does: ``half_even(mean / s_y + z_y)``, every operation in float32.  Where i8 becomes
    ui8 for that, it is ``half_even(mean / s_y + (z_y + 128)) - 128``: the sum is rounded elsewhere.
    """

    source: Quantized
    window: Window
    counts_padding: bool
    kernel: GroupKernel

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        require(to.element in EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")
        offset = _OFFSET if self.kernel is GroupKernel.UNSIGNED and to.element == "i8" else 0
        whole = QuantizedTensorType.full_range(ORT, to.element, 1.0, -offset)
        return quantize(plan, name, self._shifted(plan, name, to.scale, to.zero_point + offset), whole)

    def _shifted(self, plan: Plan, name: str, scale: float, zero_point: int) -> Value:
        """What is rounded to quantized values, the zero point added before."""
        mean = self.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            value, is_channels_last = emitter.either(mean)
            for op, number in (("arith.divf", scale), ("arith.addf", zero_point)):
                value = emitter.float_op(
                    op, value, emitter.constant(np.broadcast_to(np.float32(number), shape_of(value.type)))
                )
            return value, is_channels_last

        return plan.compute(name, self.shape, "f32", emit)

    def _f32(self, plan: Plan, name: str) -> Value:
        counts = np.broadcast_to(self._counts().astype(np.float32)[..., np.newaxis], self._channels_last)
        values = self.source.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            total = window_sums(emitter, values, self.window)
            return emitter.float_op("arith.divf", total, emitter.constant(counts)), True

        return plan.compute(name, self.shape, "f32", emit)

    @property
    def _channels_last(self) -> tuple[int, ...]:
        """The result's shape with the channels last."""
        return (self.shape[0], *self.shape[2:], self.shape[1])

    def _counts(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """How many elements each window counts: those of the image, or all of them."""
        window, size = self.window, self.source.shape[2:]
        if self.counts_padding:
            return np.full(window.output, math.prod(window.kernel))
        inside: list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = []
        dimensions = zip(size, window.kernel, window.strides, window.before, window.output, strict=True)
        for extent, kernel, stride, before, windows in dimensions:
            start = np.arange(windows) * stride - before
            inside.append(np.minimum(start + kernel, extent) - np.maximum(start, 0))
        return np.prod(np.meshgrid(*inside, indexing="ij"), axis=0)


def _eight_bit(source: Quantized) -> Quantized:
    element = source.parameters.element
    require(element in EIGHT_BIT, f"input must be i8 or ui8, but got {element}")
    return source


def _average(call: Call, source: Quantized) -> Average:
    window = pool_window(call, _eight_bit(source).shape)
    require(set(window.dilation) == {1}, f"dilations must be 1, but got {list(window.dilation)}")
    # A window in the padding alone has nothing to count.
    for pad, extent in zip(window.padding, window.kernel_extent * 2, strict=True):
        require(pad < extent, f"pads must be less than the kernel's {extent}, but got {pad}")
    counts = call.flag("count_include_pad", 0)
    call.plan.budget.spend_constant(window.output, _COUNT_BYTES)
    return Average((*source.shape[:2], *window.output), source, window, counts, call.kernel)


@imports("AveragePool")
def _average_pool(call: Call) -> Tensor:
    call.count(1)
    return _average(call, call.quantized(0))


@imports("com.microsoft.QLinearAveragePool")
def _qlinear_average_pool(call: Call) -> Tensor:
    source = _qlinear_source(call)
    return _qlinear_result(call, _average(call, source), source)


@dataclass(frozen=True, eq=False)
class GlobalAverage(F32Tensor):
    """Means of whole images: i32 sums times ``s_x / (s_y * n)`` in float32, rounded to even, zero point last."""

    source: Quantized

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        require(to.element in EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")
        before = self.source.parameters
        parameters = {**mapping(before, to), "rounding": ORT.rounding}
        parameters |= _multiplier(before.scale, to.scale, math.prod(self.source.shape[2:]))

        def emit(emitter: Emitter) -> Emitted:
            axes = tuple(range(1, len(self.shape) - 1))
            data = emitter.last(self.source.values)
            return emitter.build(MeanOp, data, element=to.element, axes=axes, keep_dims=True, **parameters), True

        return plan.compute(name, self.shape, to.element, emit)


def _multiplier(input_scale: float, output_scale: float, count: int) -> dict[str, Any]:
    """The way to form the multiplier that meets ONNX Runtime's ``s_x / (s_y * n)``, of float32 product and quotient.

    Where no way does, the input's scale is the one next to it whose exact quotient is that number.
    """
    wanted = np.float32(input_scale) / (np.float32(output_scale) * np.float32(count))
    for way in (Multiplier.F32, Multiplier.F64):
        if np.float32(real_multiplier(input_scale, [1.0], output_scale, way)[0] / count) == wanted:
            return {"multiplier": way}
    return {"multiplier": Multiplier.F64, "input_scale": float(wanted) * count * output_scale}


@imports("GlobalAveragePool")
def _global_average_pool(call: Call) -> Tensor:
    call.count(1)
    return _global(call.quantized(0))


@imports("com.microsoft.QLinearGlobalAveragePool")
def _qlinear_global_average_pool(call: Call) -> Tensor:
    source = _qlinear_source(call)
    return _qlinear_result(call, _global(source), source)


def _global(source: Quantized) -> GlobalAverage:
    _eight_bit(source)
    require(len(source.shape) >= 3, f"input must have at least 3 dimensions, but got {len(source.shape)}")
    return GlobalAverage((*source.shape[:2], *(1 for _ in source.shape[2:])), source)


def _is_channels_last(call: Call) -> bool:
    return call.flag("channels_last", 0)


def _qlinear_source(call: Call) -> Quantized:
    """Inputs 0 to 2, the channels brought to dimension 1 where `channels_last` says that they are last."""
    call.count(4, 5)
    source = dequantized(call, 0, 1, 0)
    rank = len(source.shape)
    require(rank >= 3, f"input must have at least 3 dimensions, but got {rank}")
    if not _is_channels_last(call):
        return source
    order = (0, rank - 1, *range(1, rank - 1))
    return source.with_values(_transposed(call, source.values, order))


def _qlinear_result(call: Call, qdq_group: F32Tensor, source: Quantized) -> Value:
    values = qdq_group.quantized(call.plan, call.name, parameters_of(call, 3, source.values.element))
    rank = len(values.shape)
    return _transposed(call, values, (0, *range(2, rank), 1)) if _is_channels_last(call) else values


def _transposed(call: Call, values: Value, order: tuple[int, ...]) -> Value:
    movement = Transposition(tuple(values.shape[axis] for axis in order), order)
    return move_value(call.plan, call.name, values, movement, None)
