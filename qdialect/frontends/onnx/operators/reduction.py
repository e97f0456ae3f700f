"""Reductions over axes of quantized tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.dialect import ArgMaxOp, ArgMinOp, MeanOp, ReduceMaxOp, ReduceMinOp, SumOp
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.ordering import extreme_index
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value, channels_last
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, Tensor, mapping
from qdialect.quant_math import Multiplier, Rounding

_ARG_OPS = {"ArgMax": ArgMaxOp, "ArgMin": ArgMinOp}
_EXTREME_OPS = {"ReduceMax": ReduceMaxOp, "ReduceMin": ReduceMinOp}
_SUM_OPS = {"ReduceSum": SumOp, "ReduceMean": MeanOp}


@imports(*_ARG_OPS)
def _arg(call: Call) -> Tensor:
    """Numbers with one scale compare as their quantized values do."""
    call.count(1)
    values, op_class = _eight_bit(call.tensor(0)), _ARG_OPS[call.node.kind]
    rank = len(call.tensor(0).shape)
    axis, last = call.attribute("axis", 0), call.attribute("select_last_index", 0) != 0
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    axes, keep_dims = (axis % rank,), call.attribute("keepdims", 1) != 0
    if values is None:
        return extreme_index(call, axis % rank, keep_dims, last, call.node.kind == "ArgMax")

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
    axes, keep_dims = axes_of(call, len(source.shape)), call.attribute("keepdims", 1) != 0
    if not axes:
        return source
    element = source.parameters.element
    require(element in EIGHT_BIT, f"input must be i8 or ui8, but got {element}")

    def emit(emitter: Emitter) -> Emitted:
        data, own, is_channels_last = over_axes(emitter, source.values, axes, keep_dims)
        return emitter.build(op_class, data, element=element, axes=own, keep_dims=keep_dims), is_channels_last

    shape = reduced_shape(source.shape, axes, keep_dims)
    return source.with_values(call.plan.compute(call.name, shape, element, emit))


@dataclass(frozen=True, eq=False)
class Sum(F32Tensor):
    """A sum or mean: the exact one of the quantized values, scaled and rounded to even once.

    ONNX Runtime adds float32 numbers, in an order of its own; its quantized value differs where that order's rounding
    takes the quotient over a tie.
    """

    op_class: type[SumOp | MeanOp]
    source: Quantized
    axes: tuple[int, ...]
    keep_dims: bool

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        before = self.source.parameters
        for what, element in (("input", before.element), ("output", to.element)):
            require(element in EIGHT_BIT, f"{what} must be i8 or ui8, but got {element}")
        rounding = {"rounding": Rounding.F32_RNE_ZP_LAST, "multiplier": Multiplier.F32}

        def emit(emitter: Emitter) -> Emitted:
            data, own, is_channels_last = over_axes(emitter, self.source.values, self.axes, self.keep_dims)
            parameters = {**mapping(before, to), **rounding, "axes": own, "keep_dims": self.keep_dims}
            return emitter.build(self.op_class, data, element=to.element, **parameters), is_channels_last

        return plan.compute(name, self.shape, to.element, emit)


@imports(*_SUM_OPS)
def _sum(call: Call) -> Tensor:
    source, keep_dims = call.quantized(0), call.attribute("keepdims", 1) != 0
    axes = axes_of(call, len(source.shape))
    if not axes:
        return source
    shape = reduced_shape(source.shape, axes, keep_dims)
    return Sum(shape, _SUM_OPS[call.node.kind], source, axes, keep_dims)


def axes_of(call: Call, rank: int) -> tuple[int, ...]:
    """Axes by an attribute in old operator sets and a constant input in later ones; none are all or, as asked, none."""
    call.count(1, 2)
    listed = list(call.integers(1) if call.optional(1) is not None else call.attribute("axes", list[int]()))
    require(all(-rank <= axis < rank for axis in listed), f"axes must be in [-{rank}, {rank}), but got {listed}")
    if not listed and call.attribute("noop_with_empty_axes", 0) == 0:
        return tuple(range(rank))
    return tuple(sorted({axis % rank for axis in listed}))


def reduced_shape(shape: Sequence[int], axes: Sequence[int], keep_dims: bool) -> tuple[int, ...]:
    """`shape` with the extents of `axes` 1 or left out."""
    return tuple(1 if i in axes else extent for i, extent in enumerate(shape) if keep_dims or i not in axes)


def over_axes(
    emitter: Emitter, value: Value, axes: Sequence[int], keep_dims: bool
) -> tuple[ir.Value, tuple[int, ...], bool]:
    """`value` to be reduced over `axes` of the model: as it is held, its own axes, and how the result is held."""
    held, is_channels_last = emitter.either(value)
    if not is_channels_last:
        return held, tuple(axes), False
    order = channels_last(len(value.shape))
    own = tuple(sorted(order.index(axis) for axis in axes))
    rest = [axis for axis in order if axis not in axes]
    if keep_dims or rest == sorted(rest):
        return held, own, keep_dims
    return emitter.to_channels_first(value), tuple(axes), False
