"""Sums, products, extremes and variances over dimensions, in float32."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from qdialect._mlir import ir
from qdialect.dialect import F32MaxOp, F32MinOp, F32ProdOp, F32ReduceOp, F32SumOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Shape, require
from qdialect.frontends.planning.emitter import Emitter
from qdialect.frontends.planning.f32_builder import F32Builder, reduced
from qdialect.frontends.planning.normalization import centred, mean_of
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.torch.operators.computation import computed
from qdialect.frontends.torch.operators.registry import Call, imports

_OPS: Mapping[str, type[F32ReduceOp]] = {
    "amax": F32MaxOp,
    "amin": F32MinOp,
    "max": F32MaxOp,
    "min": F32MinOp,
    "prod": F32ProdOp,
    "sum": F32SumOp,
}


@imports(
    *("amax.default", "amin.default", "max.default", "min.default", "prod.default", "prod.dim_int", "sum.default"),
    "sum.dim_IntList",
)
def _reduce(call: Call) -> Result:
    """Over some dimensions or all."""
    source = call.f32("self")
    axes, op_class = axes_of(call, len(source.shape)), _OPS[call.node.kind.split(".")[1]]
    shape, keeps = reduced_shape(call, source.shape, axes)

    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        return reduced(emitter, op_class, operands[0], axes, keeps) if axes else operands[0]

    return computed(call, shape, (source,), build)


def axes_of(call: Call, rank: int) -> Shape:
    """The dimensions that an operator names in ``dim``, ascending; all of `rank` where it names none."""
    given = call.argument("dim")
    dims = tuple(range(rank)) if given is None or given == () else call.dimensions("dim")
    require(all(-rank <= axis < rank for axis in dims), f"dim must be in [-{rank}, {rank}), but got {list(dims)}")
    axes = tuple(sorted(axis % rank for axis in dims))
    require(len(set(axes)) == len(axes), f"dim must have no dimension twice, but got {list(dims)}")
    return axes


def reduced_shape(call: Call, shape: Shape, axes: Shape) -> tuple[Shape, bool]:
    """The shape without `axes`, and whether they stay as extents of 1."""
    keeps = bool(call.argument("keepdim"))
    if keeps:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape)), True
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes), False


@imports("var.correction", "var_mean.correction")
def _variance(call: Call) -> Result:
    """``sum((x - mean)^2) / (n - correction)``, and the mean."""
    source = call.f32("self")
    axes = axes_of(call, len(source.shape))
    require(len(axes) >= 1, "input must have at least 1 dimension, but got 0")
    shape, keeps = reduced_shape(call, source.shape, axes)
    correction = call.argument("correction")
    count = math.prod(source.shape[axis] for axis in axes) - (1 if correction is None else correction)
    require(count > 0, f"correction must be less than the {count + (correction or 1)} elements")

    def variance(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        below = centred(emitter, operands[0], axes)
        square = F32Builder(emitter, source.shape)("mulf", below, below)
        total = reduced(emitter, F32SumOp, square, axes, keeps)
        return F32Builder(emitter, shape_of(total.type))("divf", total, float(count))

    def mean(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        return emitter.reshape(mean_of(emitter, operands[0], axes), shape)

    result = computed(call, shape, (source,), variance)
    return (result, computed(call, shape, (source,), mean)) if "var_mean" in call.node.kind else result
