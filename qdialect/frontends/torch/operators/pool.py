"""Maxima of windows."""

from __future__ import annotations

from dataclasses import dataclass

from qdialect.frontends.common import require
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.f32_pool import Pool
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.pool import Largest, largest
from qdialect.frontends.planning.tensors import F32Tensor, Plan
from qdialect.frontends.planning.window import Window
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.operators.windows import window_of
from qdialect.frontends.torch.tensors import Quantized


def image_of(call: Call) -> F32Tensor:
    """The argument ``self``, which must be a batch of images."""
    source = call.f32("self")
    require(len(source.shape) == 4, f"input must have 4 dimensions, but got {len(source.shape)}")
    return source


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


@imports("max_pool2d.default", "max_pool2d_with_indices.default")
def _max_pool(call: Call) -> Result:
    source = image_of(call)
    require(set(call.integers("dilation", 2)) == {1}, "dilation must be 1")
    window = pooled_window(call, source)
    shape = (*source.shape[:2], *window.output)
    if isinstance(source, Quantized) and source.is_eight_bit:
        pooled = source.with_values(largest(call.plan, call.name, source.values, window, shape))
    else:
        pooled = _Largest(shape, source, window)
    return pooled if call.node.kind.startswith("aten.max_pool2d.") else (pooled,)
