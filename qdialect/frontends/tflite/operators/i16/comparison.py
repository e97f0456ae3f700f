"""Comparisons of 16-bit values, and SELECT between them."""

from __future__ import annotations

from qdialect.frontends.common import require
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import operands
from qdialect.frontends.tflite.operators.i16.checks import output_of, same_scale, sixteen_bit
from qdialect.frontends.tflite.operators.plain import binary, elementwise
from qdialect.frontends.tflite.operators.registry import Emission, imports_i16

_PREDICATES = {
    "EQUAL": "eq",
    "GREATER": "gt",
    "GREATER_EQUAL": "ge",
    "LESS": "lt",
    "LESS_EQUAL": "le",
    "NOT_EQUAL": "ne",
}


@imports_i16(*_PREDICATES)
def _comparison(operator: Operator) -> Emission:
    """Quantized values are compared as they are, which means something where both scales are equal."""
    lhs, rhs = operands(operator, 2)
    found = [sixteen_bit(side, "input").scale for side in (lhs, rhs)]
    require(found[0] == found[1], f"inputs must have one scale, but got {found[0]} and {found[1]}")
    predicate = _PREDICATES[operator.kind]
    return binary(operator, (lhs, rhs), lambda s, x, y: s.compare(predicate, x, y))


@imports_i16("SELECT", "SELECT_V2")
def _select(operator: Operator) -> Emission:
    """Elements of the first tensor where the condition holds, of the second elsewhere; they keep their values."""
    condition, first, second = operands(operator, 3)
    require(condition.element == "i1", f"condition must be i1, but got {condition.element}")
    for tensor in (first, second):
        same_scale(sixteen_bit(tensor, "input"), output_of(operator))
    return elementwise(operator, (condition, first, second), lambda s, parts: s.select(*parts))
