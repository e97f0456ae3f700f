"""LpPool and GlobalLpPool: the Lp norm of each window, ``(sum |x|^p)^(1/p)``, in float32."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.f32_pool import global_pool, pool_of
from qdialect.frontends.onnx.operators.registry import Call, imports_f32
from qdialect.frontends.planning.blocked_sum import blocked_sum
from qdialect.frontends.planning.emitter import Emitted, Emitter
from qdialect.frontends.planning.f32_builder import F32Builder
from qdialect.frontends.planning.tensors import Computed


def _order(call: Call) -> int:
    order: int = call.attribute("p", 2)
    require(order >= 1, f"p must be at least 1, but got {order}")
    return order


def _powers(emitter: Emitter, value: ir.Value, order: int) -> ir.Value:
    """``|x|^p``."""
    s = F32Builder(emitter, shape_of(value.type))
    if order == 2:
        return s("mulf", value, value)
    return s("absf", value) if order == 1 else s("powf", s("absf", value), float(order))


def _root(emitter: Emitter, total: ir.Value, order: int) -> ir.Value:
    s = F32Builder(emitter, shape_of(total.type))
    if order == 1:
        return total
    return s("sqrt", total) if order == 2 else s("powf", total, 1 / order)


@imports_f32("LpPool")
def _lp_pool(call: Call) -> Computed:
    """Over one to three dimensions of channels-first data; what lies outside of the image counts as 0."""
    call.count(1)
    source, order = call.f32(0), _order(call)
    pool, value = pool_of(call, source.shape), source.f32(call.plan, call.name)
    shape = (*source.shape[:2], *map(len, pool.positions))

    def emit(emitter: Emitter) -> Emitted:
        return _root(emitter, pool.sums(emitter, _powers(emitter, emitter.last(value), order)), order), True

    return Computed(shape, call.plan.compute(call.name, shape, "f32", emit))


@imports_f32("GlobalLpPool")
def _global_lp_pool(call: Call) -> Computed:
    order = _order(call)

    def norm(emitter: Emitter, data: ir.Value, axes: Shape) -> ir.Value:
        return _root(emitter, blocked_sum(emitter, _powers(emitter, data, order), axes), order)

    return global_pool(call, norm)
