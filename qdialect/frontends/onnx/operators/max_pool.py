"""MaxPool and GlobalMaxPool: the largest quantized value is that of the largest number."""

from __future__ import annotations

import math
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.dialect import GatherOp, MaxPool2DOp, PadOp
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of
from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.operators.window import image_of, pool_window
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.f32_pool import Pool
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, Tensor
from qdialect.frontends.planning.window import Window


@dataclass(frozen=True)
class _Pooling:
    """Windows over an image of quantized values, whose largest ones they become."""

    window: Window
    shape: Shape

    def pooled(self, plan: Plan, name: str, source: Value) -> Value:
        element = source.element
        require(element in EIGHT_BIT, f"input must be i8 or ui8, but got {element}")
        low, high = ELEMENT_RANGES[element]

        def emit(emitter: Emitter) -> Emitted:
            data, window = _without_dilation(emitter, image_of(emitter, source), self.window.two_dimensional(), low)
            pooled = emitter.build(
                MaxPool2DOp,
                data,
                element=element,
                kernel=window.kernel,
                strides=window.strides,
                padding=window.padding,
                output_min=low,
                output_max=high,
            )
            return emitter.reshape(pooled, (self.shape[0], *self.shape[2:], self.shape[1])), True

        return plan.compute(name, self.shape, element, emit)


def _without_dilation(emitter: Emitter, data: ir.Value, window: Window, lowest: int) -> tuple[ir.Value, Window]:
    """The elements of dilated windows side by side, and the windows over them; `lowest` never wins."""
    if set(window.dilation) == {1}:
        return data, window
    element, zeros = element_of(data.type), (0, 0)
    padding = {"low": (0, *window.before, 0), "high": (0, *window.after, 0), "value": lowest}
    data = emitter.build(PadOp, data, element=element, **padding)
    for i in range(2):
        starts = range(0, window.output[i] * window.strides[i], window.strides[i])
        indices = tuple(start + k * window.dilation[i] for start in starts for k in range(window.kernel[i]))
        data = emitter.build(GatherOp, data, element=element, axis=i + 1, indices=indices)
    return data, Window(window.kernel, window.kernel, (1, 1), zeros, zeros, window.output)


@dataclass(frozen=True, eq=False)
class Largest(F32Tensor):
    """The largest f32 values of windows: once they are quantized values, those are compared."""

    source: F32Tensor
    pooling: _Pooling

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        return self.pooling.pooled(plan, name, self.source.quantized(plan, name, to))


def _pooled(call: Call, pooling: _Pooling) -> Tensor:
    source = call.tensor(0)
    if isinstance(source, Quantized):
        require(len(source.scales) == 1, f"tensor must have one scale, but got {len(source.scales)}")
        return source.with_values(pooling.pooled(call.plan, call.name, source.values))
    if isinstance(source, F32Tensor):
        return Largest(pooling.shape, source, pooling)
    return pooling.pooled(call.plan, call.name, call.value(0))


@imports("MaxPool")
def _max_pool(call: Call) -> Tensor:
    """Of quantized values too, that no DequantizeLinear turned into f32 values."""
    call.count(1)
    require(call.attribute("storage_order", 0) == 0, "storage_order must be 0")
    shape = call.tensor(0).shape
    window = pool_window(call, shape)
    for pad, extent in zip(window.padding, window.kernel_extent * 2, strict=True):
        require(pad < extent, f"pads must be less than the kernel's {extent}, but got {pad}")
    Pool.of(window, shape[2:], call.plan.budget).check()
    return _pooled(call, _Pooling(window, (*shape[:2], *window.output)))


@imports("GlobalMaxPool")
def _global_max_pool(call: Call) -> Tensor:
    call.count(1)
    shape = call.tensor(0).shape
    require(len(shape) >= 3, f"input must have at least 3 dimensions, but got {len(shape)}")
    kernel = shape[2:] if len(shape) == 4 else (math.prod(shape[2:]),)
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    window = Window(kernel, ones, ones, zeros, zeros, ones)
    return _pooled(call, _Pooling(window, (*shape[:2], *(1 for _ in shape[2:]))))
