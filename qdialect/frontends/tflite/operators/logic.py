"""Comparisons, which give booleans, operators on booleans, and SELECT by them."""

from __future__ import annotations

from qdialect.frontends.common import require
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import operands, same_content
from qdialect.frontends.tflite.operators.plain import binary, check_type, elementwise, unary
from qdialect.frontends.tflite.operators.registry import Emission, imports

_COMPARISONS = {
    "EQUAL": "eq",
    "GREATER": "gt",
    "GREATER_EQUAL": "ge",
    "LESS": "lt",
    "LESS_EQUAL": "le",
    "NOT_EQUAL": "ne",
}
_LOGIC = {"LOGICAL_AND": "arith.andi", "LOGICAL_OR": "arith.ori"}


@imports(*_COMPARISONS)
def _comparison(operator: Operator) -> Emission:
    """Of floats no comparison with NaN holds but NOT_EQUAL."""
    sides, predicate = operands(operator, 2), _COMPARISONS[operator.kind]
    check_type(sides, ("f32", "i32", "i64", *(("i1",) if predicate in ("eq", "ne") else ())))
    return binary(operator, sides, lambda s, lhs, rhs: s.compare(predicate, lhs, rhs))


@imports(*_LOGIC)
def _logic(operator: Operator) -> Emission:
    sides, name = operands(operator, 2), _LOGIC[operator.kind]
    check_type(sides, ("i1",))
    return binary(operator, sides, lambda s, lhs, rhs: s.op(name, lhs, rhs))


@imports("LOGICAL_NOT")
def _not(operator: Operator) -> Emission:
    (data,) = operands(operator, 1)
    check_type([data], ("i1",))
    return unary(operator, data, lambda s, x: s.op("arith.xori", x, 1))


@imports("SELECT", "SELECT_V2")
def _select(operator: Operator) -> Emission:
    """Elements of the first tensor where the condition holds, of the second elsewhere; they keep their numbers."""
    condition, first, second = operands(operator, 3)
    require(condition.element == "i1", f"condition must be i1, but got {condition.element}")
    output = operator.outputs[0]
    require(output.element in ("f32", "i32", "i64"), f"output must be f32, i32, i64, but got {output.element}")
    for tensor in (first, second):
        same_content(tensor, output)
    return elementwise(operator, (condition, first, second), lambda s, parts: s.select(*parts))
