"""Reductions over axes of quantized tensors, integers and floats; CumSum and TopK."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic import Multiplier, Rounding
from qdialect.frontends.building import op_builder
from qdialect.frontends.building.checks import axes_in, axis_in, require
from qdialect.frontends.onnx.operators import registry
from qdialect.frontends.onnx.operators.indexing import elements_along
from qdialect.frontends.planning import reduction
from qdialect.frontends.planning.elementwise import Arithmetic, common_element, tensor_of, unary
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import EIGHT_BIT, Computed, Tensor
from qdialect.ir._mlir import ir

_ARG_OPS = {"ArgMax": qnn.ArgMaxOp, "ArgMin": qnn.ArgMinOp}
_EXTREME_OPS = {"ReduceMax": qnn.ReduceMaxOp, "ReduceMin": qnn.ReduceMinOp}
_ROUNDING = {"rounding": Rounding.F32_RNE_ZP_LAST, "multiplier": Multiplier.F32}
_SUM_OPS = {"ReduceSum": qnn.SumOp, "ReduceMean": qnn.MeanOp}


@registry.imports(*_ARG_OPS)
def _arg(call: registry.Call) -> Tensor:
    """Numbers with one scale compare as their quantized values do."""
    values, op_class = _eight_bit(call.tensor(0)), _ARG_OPS[call.node.kind]
    rank = len(call.tensor(0).shape)
    axis, last = call.attribute("axis", 0), call.flag("select_last_index", 0)
    axis = axis_in(axis, rank)
    axes, keep_dims = (axis,), call.flag("keepdims", 1)
    if values is None:
        source, is_largest = call.tensor(0), call.node.kind == "ArgMax"
        return reduction.extreme_index(call, source, axis, keep_dims=keep_dims, last=last, is_largest=is_largest)

    def emit(emitter: Emitter) -> Emitted:
        data, (along,), is_channels_last = reduction.over_axes(emitter, values, axes, keep_dims)
        return emitter.build(
            op_class, data, element="i64", axis=along, keep_dims=keep_dims, last=last
        ), is_channels_last

    return call.plan.compute(call.name, reduction.reduced_shape(values.shape, axes, keep_dims), "i64", emit)


def _eight_bit(source: Tensor) -> Value | None:
    """Values of 8 bits that are ordered as the numbers they stand for."""
    if isinstance(source, registry.Quantized):
        return source.values if source.is_eight_bit else None
    return source if isinstance(source, Value) and source.element in EIGHT_BIT else None


@registry.imports(*_EXTREME_OPS)
def _extreme(call: registry.Call) -> Tensor:
    """The quantized value of the extreme number is the extreme quantized value."""
    source = call.quantized(0)
    axes, keep_dims = axes_of(call, len(source.shape)), call.flag("keepdims", 1)
    if not axes:
        return source
    element = source.parameters.element
    require(element in EIGHT_BIT, f"input must be i8 or ui8, but got {element}")
    return source.with_values(_extreme_value(call, source.values, axes, keep_dims))


def _extreme_value(call: registry.Call, value: Value, axes: tuple[int, ...], keep_dims: bool) -> Value:
    """The largest or smallest of 8-bit values."""

    def emit(emitter: Emitter) -> Emitted:
        data, own, is_channels_last = reduction.over_axes(emitter, value, axes, keep_dims)
        op_class = _EXTREME_OPS[call.node.kind]
        return emitter.build(op_class, data, element=value.element, axes=own, keep_dims=keep_dims), is_channels_last

    shape = reduction.reduced_shape(value.shape, axes, keep_dims)
    return call.plan.compute(call.name, shape, value.element, emit)


@registry.imports(*_SUM_OPS)
def _sum(call: registry.Call) -> Tensor:
    source, keep_dims = call.quantized(0), call.flag("keepdims", 1)
    axes = axes_of(call, len(source.shape))
    if not axes:
        return source
    shape = reduction.reduced_shape(source.shape, axes, keep_dims)
    return reduction.Reduced(shape, _SUM_OPS[call.node.kind], source, axes, keep_dims, _ROUNDING, name=call.name)


def axes_of(call: registry.Call, rank: int) -> tuple[int, ...]:
    """Axes by an attribute in old operator sets and a constant input in later ones; none are all or, as asked, none."""
    listed = list(call.integers(1) if call.optional(1) is not None else call.attribute("axes", list[int]()))
    axes = tuple(sorted(set(axes_in(listed, rank))))
    # Read even where it has no effect: an attribute that is not read is rejected.
    keeps_all = call.flag("noop_with_empty_axes", 0)
    return axes if listed or keeps_all else tuple(range(rank))


# CumSum, and reductions of integers that stand for themselves.

_KINDS = {"ReduceMax": "max", "ReduceMin": "min"}
"""Of reductions that are no sums; ONNX Runtime multiplies, and adds squares and magnitudes, in float64."""


@registry.imports_integers(*_KINDS, "ReduceSum")
def _reduction(call: registry.Call) -> Tensor:
    """Sums of i32 saturate; those of i64 wrap around, where ONNX Runtime adds in float64."""
    value, keep_dims = registry.value_of(call, 0), call.flag("keepdims", 1)
    axes, kind = axes_of(call, len(value.shape)), _KINDS.get(call.node.kind, "sum")
    element = common_element([value], ("i32", "i64") if kind == "sum" else ("i8", "ui8", "i32", "i64"))
    if not axes:
        return value
    if element in EIGHT_BIT:
        return _extreme_value(call, value, axes, keep_dims)
    if element == "i64" or kind != "sum":
        return reduction.reduced_value(call, value, kind, axes, keep_dims)
    wide = unary(call, value, "i64", lambda s, x: s.resize(x, "i64"))
    total, ends = reduction.reduced_value(call, wide, kind, axes, keep_dims), np.iinfo(np.int32)

    def saturated(s: Arithmetic, x: ir.Value) -> ir.Value:
        return s.resize(s.op("arith.minsi", s.op("arith.maxsi", x, int(ends.min)), int(ends.max)), "i32")

    return unary(call, total, "i32", saturated)


@registry.imports("CumSum")
def _cumsum(call: registry.Call) -> Tensor:
    value, axes = registry.value_of(call, 0), call.integers(1)
    common_element([value], ("i32", "i64", "f32"))
    require(len(axes) == 1, f"axis must have 1 entry, but got {len(axes)}")
    (axis,) = axes_in(axes, len(value.shape))
    how = {name: call.flag(name, 0) for name in ("exclusive", "reverse")}
    return tensor_of(reduction.running_sum(call, value, axis, **how))


# Reductions of floats, some with functions around them: ReduceL1, ReduceL2, ReduceLogSum, ReduceProd and others.


@registry.imports_f32(*_KINDS, *_SUM_OPS)
def _f32_reduction(call: registry.Call) -> Computed:
    source, kind = call.f32(0).f32(call.plan, call.name), call.node.kind
    axes, keep_dims = axes_of(call, len(source.shape)), call.flag("keepdims", 1)
    if not axes:
        return Computed(source.shape, source)
    count = float(math.prod(source.shape[axis] for axis in axes))

    def emit(emitter: Emitter) -> Emitted:
        data, own, is_channels_last = reduction.over_axes(emitter, source, axes, keep_dims)
        if kind in _KINDS:
            return op_builder.reduced_numbers(emitter, _KINDS[kind], data, own, keep_dims), is_channels_last
        total = op_builder.blocked_sum(emitter, data, own, keep_dims)
        return (emitter.f32("divf", total, count) if kind == "ReduceMean" else total), is_channels_last

    shape = reduction.reduced_shape(source.shape, axes, keep_dims)
    return Computed(shape, call.plan.compute(call.name, shape, "f32", emit))


_LARGEST = float(np.finfo(np.float32).max)

_Function = Callable[[Arithmetic, ir.Value], ir.Value]


def _same(_: Arithmetic, x: ir.Value) -> ir.Value:
    return x


def _square(s: Arithmetic, x: ir.Value) -> ir.Value:
    return s.op("arith.mulf", x, x)


@dataclass(frozen=True)
class _Norm:
    """``after(reduction of before(x))``."""

    before: _Function
    op_class: type[qnn.F32ReduceOp]
    after: _Function


_NORMS = {
    "ReduceL1": _Norm(lambda s, x: s.op("math.absf", x), qnn.F32SumOp, _same),
    "ReduceL2": _Norm(_square, qnn.F32SumOp, lambda s, x: s.op("math.sqrt", x)),
    "ReduceLogSum": _Norm(_same, qnn.F32SumOp, lambda s, x: s.op("math.log", x)),
    "ReduceProd": _Norm(_same, qnn.F32ProdOp, _same),
    "ReduceSumSquare": _Norm(_square, qnn.F32SumOp, _same),
}


@registry.imports_f32(*_NORMS)
def _norm(call: registry.Call) -> Computed:
    shape, norm = call.f32(0).shape, _NORMS[call.node.kind]
    axes, keep_dims = axes_of(call, len(shape)), call.flag("keepdims", 1)

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        s = Arithmetic(emitter)
        terms = norm.before(s, values[0])
        if axes:
            terms = emitter.build(norm.op_class, terms, element="f32", axes=axes, keep_dims=keep_dims)
        return norm.after(s, terms)

    return registry.computed(call, reduction.reduced_shape(shape, axes, keep_dims), (0,), build)


@registry.imports_f32("ReduceLogSumExp")
def _log_sum_exp(call: registry.Call) -> Computed:
    """``m + log(sum(e^(x - m)))`` with the largest number m, where it is finite."""
    shape = call.f32(0).shape
    axes, keep_dims = axes_of(call, len(shape)), call.flag("keepdims", 1)
    after = reduction.reduced_shape(shape, axes, keep_dims)

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        s, (x,) = emitter.f32, values
        if not axes:
            return x
        largest = op_builder.reduced(emitter, qnn.F32MaxOp, x, axes)
        bounded = s("minimumf", s("maximumf", largest, -_LARGEST), _LARGEST)
        terms = s("exp", s("subf", x, bounded))
        total = op_builder.reduced(emitter, qnn.F32SumOp, terms, axes, keep_dims)
        return s("addf", s("log", total), emitter.reshape(bounded, after))

    return registry.computed(call, after, (0,), build)


# TopK: the largest or smallest numbers along a dimension.


@registry.imports("TopK")
def _top_k(call: registry.Call) -> tuple[Tensor, ...]:
    """In order, equal numbers in their own."""
    source = call.tensor(0)
    axis = axis_in(call.attribute("axis", -1), len(source.shape))
    counts = call.integers(1) if call.optional(1) is not None else (call.attribute("k", 0),)
    require(len(counts) == 1, f"k must have 1 entry, but got {len(counts)}")
    count, extent = counts[0], source.shape[axis]
    require(1 <= count <= extent, f"k must be in [1, {extent}], but got {count}")
    indices = reduction.top_indices(call, source, axis, count, is_largest=call.flag("largest", 1))
    return elements_along(call, source, indices, axis), indices
