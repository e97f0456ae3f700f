"""Reductions over axes of quantized tensors."""

from __future__ import annotations

from qdialect.dialect import ArgMaxOp, ArgMinOp, MeanOp, ReduceMaxOp, ReduceMinOp, SumOp
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.ordering import extreme_index
from qdialect.frontends.planning.reduction import Reduced, over_axes, reduced_shape
from qdialect.frontends.planning.tensors import EIGHT_BIT, Tensor
from qdialect.quant_math import Multiplier, Rounding

_ARG_OPS = {"ArgMax": ArgMaxOp, "ArgMin": ArgMinOp}
_EXTREME_OPS = {"ReduceMax": ReduceMaxOp, "ReduceMin": ReduceMinOp}
_ROUNDING = {"rounding": Rounding.F32_RNE_ZP_LAST, "multiplier": Multiplier.F32}
_SUM_OPS = {"ReduceSum": SumOp, "ReduceMean": MeanOp}


@imports(*_ARG_OPS)
def _arg(call: Call) -> Tensor:
    """Numbers with one scale compare as their quantized values do."""
    call.count(1)
    values, op_class = _eight_bit(call.tensor(0)), _ARG_OPS[call.node.kind]
    rank = len(call.tensor(0).shape)
    axis, last = call.attribute("axis", 0), call.flag("select_last_index", 0)
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    axes, keep_dims = (axis % rank,), call.flag("keepdims", 1)
    if values is None:
        source, is_largest = call.tensor(0), call.node.kind == "ArgMax"
        return extreme_index(call, source, axis % rank, keep_dims=keep_dims, last=last, is_largest=is_largest)

    def emit(emitter: Emitter) -> Emitted:
        data, (along,), is_channels_last = over_axes(emitter, values, axes, keep_dims)
        return emitter.build(
            op_class, data, element="i64", axis=along, keep_dims=keep_dims, last=last
        ), is_channels_last

    return call.plan.compute(call.name, reduced_shape(values.shape, axes, keep_dims), "i64", emit)


def _eight_bit(source: Tensor) -> Value | None:
    """Values of 8 bits that are ordered as the numbers they stand for."""
    if isinstance(source, Quantized):
        return source.values if source.is_eight_bit else None
    return source if isinstance(source, Value) and source.element in EIGHT_BIT else None


@imports(*_EXTREME_OPS)
def _extreme(call: Call) -> Tensor:
    """The quantized value of the extreme number is the extreme quantized value."""
    source, op_class = call.quantized(0), _EXTREME_OPS[call.node.kind]
    axes, keep_dims = axes_of(call, len(source.shape)), call.flag("keepdims", 1)
    if not axes:
        return source
    element = source.parameters.element
    require(element in EIGHT_BIT, f"input must be i8 or ui8, but got {element}")

    def emit(emitter: Emitter) -> Emitted:
        data, own, is_channels_last = over_axes(emitter, source.values, axes, keep_dims)
        return emitter.build(op_class, data, element=element, axes=own, keep_dims=keep_dims), is_channels_last

    shape = reduced_shape(source.shape, axes, keep_dims)
    return source.with_values(call.plan.compute(call.name, shape, element, emit))


@imports(*_SUM_OPS)
def _sum(call: Call) -> Tensor:
    source, keep_dims = call.quantized(0), call.flag("keepdims", 1)
    axes = axes_of(call, len(source.shape))
    if not axes:
        return source
    shape = reduced_shape(source.shape, axes, keep_dims)
    return Reduced(shape, _SUM_OPS[call.node.kind], source, axes, keep_dims, _ROUNDING, name=call.name)


def axes_of(call: Call, rank: int) -> tuple[int, ...]:
    """Axes by an attribute in old operator sets and a constant input in later ones; none are all or, as asked, none."""
    call.count(1, 2)
    listed = list(call.integers(1) if call.optional(1) is not None else call.attribute("axes", list[int]()))
    require(all(-rank <= axis < rank for axis in listed), f"axes must be in [-{rank}, {rank}), but got {listed}")
    # Read where it says nothing too: an attribute that no one reads is refused.
    keeps_all = call.flag("noop_with_empty_axes", 0)
    if not listed and not keeps_all:
        return tuple(range(rank))
    return tuple(sorted({axis % rank for axis in listed}))
