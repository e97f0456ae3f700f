"""Reductions along one axis."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import ArgMaxOp, ReduceMaxOp, ReduceMinOp, build
from qdialect.passes.tosa.conversion import Conversion, converts, integer_attribute, result_element


@converts("tosa.argmax")
def _argmax(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """The first of equal quantized values."""
    value, axis = conversion.value(op.operands[0]), integer_attribute(op, "axis")
    return build(ArgMaxOp, value, element=result_element(op), axis=axis).output


@converts("tosa.reduce_max", "tosa.reduce_min")
def _extreme(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """The reduced dimension stays, with one element."""
    value, axis = conversion.value(op.operands[0]), integer_attribute(op, "axis")
    op_class = ReduceMaxOp if op.name == "tosa.reduce_max" else ReduceMinOp
    return build(op_class, value, element=result_element(op), axes=(axis,), keep_dims=True).output
