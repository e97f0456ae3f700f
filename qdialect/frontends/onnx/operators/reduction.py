"""Reductions over axes of quantized tensors."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect._mlir import ir
from qdialect.dialect import ArgMaxOp, ArgMinOp
from qdialect.frontends.common import require
from qdialect.frontends.onnx.emitter import Emitter, Placed, Value, channels_last
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import EIGHT_BIT, Constant, Quantized, Real, Tensor

_ARG_OPS = {"ArgMax": ArgMaxOp, "ArgMin": ArgMinOp}


@imports(*_ARG_OPS)
def _arg(call: Call) -> Tensor:
    """Numbers with one scale compare as their codes do."""
    call.count(1)
    codes, op_class = _codes_of(call), _ARG_OPS[call.node.kind]
    rank = len(codes.shape)
    axis, last = call.attribute("axis", 0), call.attribute("select_last_index", 0) != 0
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    axes, keep_dims = (axis % rank,), call.attribute("keepdims", 1) != 0

    def emit(emitter: Emitter) -> Placed:
        data, (along,), is_last = over_axes(emitter, codes, axes, keep_dims)
        return emitter.build(op_class, data, element="i64", axis=along, keep_dims=keep_dims, last=last), is_last

    return call.plan.compute(call.name, reduced_shape(codes.shape, axes, keep_dims), "i64", emit)


def _codes_of(call: Call) -> Value:
    source = call.tensor(0)
    if isinstance(source, Real) and not isinstance(source, Quantized):
        require(False, "input must be codes or come from a DequantizeLinear")
    codes = source.codes if isinstance(source, Quantized) else call.codes(0)
    require(not isinstance(source, Quantized) or len(source.scales) == 1, "input must have one scale")
    require(codes.element in EIGHT_BIT, f"input must be i8 or ui8, but got {codes.element}")
    require(not isinstance(source, Constant), "input must not be constant")
    return codes


def reduced_shape(shape: Sequence[int], axes: Sequence[int], keep_dims: bool) -> tuple[int, ...]:
    """`shape` with the extents of `axes` 1 or left out."""
    return tuple(1 if i in axes else extent for i, extent in enumerate(shape) if keep_dims or i not in axes)


def over_axes(
    emitter: Emitter, value: Value, axes: Sequence[int], keep_dims: bool
) -> tuple[ir.Value, tuple[int, ...], bool]:
    """`value` to be reduced over `axes` of the model: as it is held, its own axes, and how the result is held."""
    held, is_last = emitter.either(value)
    if not is_last:
        return held, tuple(axes), False
    order = channels_last(len(value.shape))
    own = tuple(sorted(order.index(axis) for axis in axes))
    rest = [axis for axis in order if axis not in axes]
    if keep_dims or rest == sorted(rest):
        return held, own, keep_dims
    return emitter.plain(value), tuple(axes), False
