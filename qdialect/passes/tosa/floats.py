"""Functions of f32 values, which become upstream ops: one kernel computes those that follow each other.

TOSA leaves the last places of transcendental functions open; here they are the float32 functions of kernels, at most
one unit of the last place from the truth.
"""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import element_of
from qdialect.passes.tosa.conversion import Conversion, converts, require
from qdialect.passes.tosa.upstream import expression
from qdialect.quant_math import activations
from qdialect.quant_math.expressions import Expression

_FORMULAS: dict[str, Expression] = {
    "tosa.ceil": activations.ceil,
    "tosa.cos": activations.cos,
    "tosa.erf": activations.erf,
    "tosa.exp": activations.exp,
    "tosa.floor": activations.floor,
    "tosa.log": activations.log,
    "tosa.reciprocal": activations.reciprocal,
    "tosa.rsqrt": activations.rsqrt,
    "tosa.sigmoid": activations.sigmoid,
    "tosa.sin": activations.sin,
    "tosa.tanh": activations.tanh,
}


@converts(*_FORMULAS)
def _function(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    require(element_of(value.type) == "f32", f"must be of f32, but got {element_of(value.type)}")
    return expression(_FORMULAS[op.name], value)
