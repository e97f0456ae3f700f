"""MaxPool and GlobalMaxPool: the largest quantized value is that of the largest number."""

from __future__ import annotations

import math

from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.operators.window import pool_window
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.f32_pool import Pool
from qdialect.frontends.planning.pool import Largest, largest
from qdialect.frontends.planning.tensors import F32Tensor, Tensor
from qdialect.frontends.planning.window import Window


def _pooled(call: Call, window: Window, shape: Shape) -> Tensor:
    source = call.tensor(0)
    if isinstance(source, Quantized):
        require(len(source.scales) == 1, f"tensor must have one scale, but got {len(source.scales)}")
        return source.with_values(largest(call.plan, call.name, source.values, window, shape))
    if isinstance(source, F32Tensor):
        return Largest(shape, source, window)
    return largest(call.plan, call.name, call.value(0), window, shape)


@imports("MaxPool")
def _max_pool(call: Call) -> Tensor:
    """Of quantized values too, that no DequantizeLinear turned into f32 values."""
    call.count(1)
    require(not call.flag("storage_order", 0), "storage_order must be 0")
    shape = call.tensor(0).shape
    window = pool_window(call, shape)
    for pad, extent in zip(window.padding, window.kernel_extent * 2, strict=True):
        require(pad < extent, f"pads must be less than the kernel's {extent}, but got {pad}")
    Pool.of(window, shape[2:], call.plan.budget).check()
    return _pooled(call, window, (*shape[:2], *window.output))


@imports("GlobalMaxPool")
def _global_max_pool(call: Call) -> Tensor:
    call.count(1)
    shape = call.tensor(0).shape
    require(len(shape) >= 3, f"input must have at least 3 dimensions, but got {len(shape)}")
    kernel = shape[2:] if len(shape) == 4 else (math.prod(shape[2:]),)
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    window = Window(kernel, ones, ones, zeros, zeros, ones)
    return _pooled(call, window, (*shape[:2], *(1 for _ in shape[2:])))
