"""Maxima of windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.frontends.common import require
from qdialect.frontends.planning.computation import Computation
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.f32_pool import Pool, Positions
from qdialect.frontends.planning.movement import Reshaping
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.pool import Largest, largest
from qdialect.frontends.planning.tensors import F32Tensor, Plan
from qdialect.frontends.planning.window import Window
from qdialect.frontends.torch.operators.movement import moved
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports
from qdialect.frontends.torch.operators.windows import window_of
from qdialect.frontends.torch.tensors import Quantized


def image_of(call: Call) -> F32Tensor:
    """The argument ``self``, images or one image, which becomes a batch of one."""
    source = call.f32("self")
    require(len(source.shape) in (3, 4), f"input must have 3 or 4 dimensions, but got {len(source.shape)}")
    return source if len(source.shape) == 4 else as_f32("self", moved(call, source, Reshaping((1, *source.shape))))


def like_input(call: Call, pooled: F32Tensor) -> F32Tensor:
    """What is made of images; of one image without its batch."""
    if len(call.tensor("self").shape) == 4:
        return pooled
    return as_f32("self", moved(call, pooled, Reshaping(pooled.shape[1:])))


def pooled_window(call: Call, source: F32Tensor) -> Window:
    """The window of a pool over `source`."""
    return window_of(call, source.shape[2:], call.integers("kernel_size", 2), dilated=False)


@dataclass(frozen=True, eq=False)
class _Largest(Largest):
    """In float32 too."""

    def _f32(self, plan: Plan, name: str) -> Value:
        source = self.source.f32(plan, name)
        pool = Pool.of(self.window, self.source.shape[2:], plan.budget)
        pool.check()
        return plan.compute(name, self.shape, "f32", lambda emitter: (pool.maxima(emitter, emitter.last(source)), True))


def largest_of(call: Call, source: F32Tensor, window: Window) -> F32Tensor:
    """The largest numbers of windows over [N, C, ...]."""
    shape = (*source.shape[:2], *window.output)
    if isinstance(source, Quantized) and source.is_eight_bit:
        return source.with_values(largest(call.plan, call.name, source.values, window, shape))
    return _Largest(shape, source, window)


@imports("max_pool2d.default", "max_pool2d_with_indices.default")
def _max_pool(call: Call) -> Result:
    source = image_of(call)
    window = window_of(call, source.shape[2:], call.integers("kernel_size", 2), dilated=True)
    found = like_input(call, largest_of(call, source, window))
    return found if call.node.kind.startswith("aten.max_pool2d.") else (found,)


@imports("adaptive_max_pool2d.default")
def _adaptive_max_pool(call: Call) -> Result:
    """Windows that divide an image into as many as the output has, of different sizes where they must be."""
    source = image_of(call)
    return (like_input(call, largest_of_parts(call, source)),)


def largest_of_parts(call: Call, source: F32Tensor) -> F32Tensor:
    """The largest numbers of the parts that the argument ``output_size`` divides [N, C, ...] into."""
    size = source.shape[2:]
    output = call.integers("output_size", len(size))
    require(min(output) >= 1, f"output_size must be at least 1, but got {list(output)}")
    positions = tuple(_divided(extent, count) for extent, count in zip(size, output, strict=True))

    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        return Pool(size, positions).maxima(emitter, operands[0])

    shape = (*source.shape[:2], *output)
    return Computation(shape, (source,), build, is_channels_last=True, name=call.name)


def _divided(extent: int, count: int) -> Positions:
    """From ``floor(i * extent / count)`` to ``ceil((i + 1) * extent / count)``; smaller windows have a tap twice."""
    windows = [range(i * extent // count, -(-(i + 1) * extent // count)) for i in range(count)]
    taps = max(map(len, windows))
    return tuple(tuple(window) + (window[-1],) * (taps - len(window)) for window in windows)
