"""Reductions along one axis."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import ArgMaxOp, build
from qdialect.passes.tosa.conversion import Conversion, converts, integer_attribute, result_element


@converts("tosa.argmax")
def _argmax(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """The first of equal codes."""
    value, axis = conversion.value(op.operands[0]), integer_attribute(op, "axis")
    return build(ArgMaxOp, value, element=result_element(op), axis=axis).output
