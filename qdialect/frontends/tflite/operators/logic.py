"""Comparisons, which give booleans, operators on booleans, and SELECT by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qdialect._mlir import ir
from qdialect.dialect import RequantizeOp
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import EIGHT_BIT, eight_bit, operands, same_content
from qdialect.frontends.tflite.operators.plain import binary, check_broadcast, check_type, spread, unary
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.quant_math import Rounding

COMPARISONS = {
    "EQUAL": "eq",
    "GREATER": "gt",
    "GREATER_EQUAL": "ge",
    "LESS": "lt",
    "LESS_EQUAL": "le",
    "NOT_EQUAL": "ne",
}
"""The predicate of each comparison."""
# Of both sides of a comparison of quantized values.
_FRACTION_BITS = 8
_LOGIC = {"LOGICAL_AND": "arith.andi", "LOGICAL_OR": "arith.ori"}


@imports(*COMPARISONS)
def _comparison(operator: Operator) -> Emission:
    """Of floats no comparison with NaN holds but NOT_EQUAL."""
    sides, predicate = operands(operator, 2), COMPARISONS[operator.kind]
    if sides[0].element in EIGHT_BIT:
        return _quantized_comparison(operator, sides, predicate)
    check_type(sides, ("f32", "i32", "i64", *(("i1",) if predicate in ("eq", "ne") else ())))
    return binary(operator, sides, lambda s, lhs, rhs: s.compare(predicate, lhs, rhs))


def _quantized_comparison(operator: Operator, sides: Sequence[Tensor], predicate: str) -> Emission:
    """Both sides in steps of 1/256, each rescaled by itself (TFLite ComparisonWithScaling)."""
    for side, what in zip(sides, ("left operand", "right operand"), strict=True):
        eight_bit(side, what)
        require(side.scale < 1, f"{what} scale must be below 1, but got {side.scale}")
    check_type(sides, EIGHT_BIT)
    shape = operator.outputs[0].shape
    check_broadcast(sides, shape)

    def rescaled(emitter: Emitter, side: Tensor) -> ir.Value:
        value = Arithmetic(emitter).op("arith.muli", _offset(emitter, side), 1 << _FRACTION_BITS)
        how: dict[str, Any] = {"rounding": Rounding.FIXED32_DOUBLE, "output_scale": 1.0, "output_zero_point": 0}
        return emitter.build(RequantizeOp, value, element="i32", input_scale=side.scale, **how)

    def emit(emitter: Emitter) -> ir.Value:
        values = [spread(emitter, rescaled(emitter, side), shape) for side in sides]
        return Arithmetic(emitter).compare(predicate, *values)

    return emit


def _offset(emitter: Emitter, tensor: Tensor) -> ir.Value:
    """The values of an 8-bit tensor without its zero point, as i32."""
    s, is_unsigned = Arithmetic(emitter, is_unsigned=tensor.element == "ui8"), tensor.element == "ui8"
    value = emitter.value(tensor)
    value = s.convert("tensor.bitcast", value, "i8") if is_unsigned else value
    return s.op("arith.addi", s.resize(value, "i32"), -tensor.zero_point)


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
    taken = ("f32", "i8", "ui8", "i1", "i16", "i32", "i64")
    require(output.element in taken, f"output must be {', '.join(taken)}, but got {output.element}")
    for tensor in (first, second):
        same_content(tensor, output)
    tensors, shape = aligned(operator.kind, condition, (first, second)), output.shape
    check_broadcast(tensors, shape)

    def emit(emitter: Emitter) -> ir.Value:
        s = Arithmetic(emitter)
        values = [spread(emitter, emitter.reshape(emitter.value(t), t.shape), shape) for t in tensors]
        if output.element != "ui8":
            return s.select(*values)
        chosen = s.select(values[0], *(s.convert("tensor.bitcast", value, "i8") for value in values[1:]))
        return s.convert("tensor.bitcast", chosen, "ui8")

    return emit


def aligned(kind: str, condition: Tensor, sides: Sequence[Tensor]) -> Sequence[Tensor]:
    """SELECT takes a condition of one dimension along the first of the others, not along their last."""
    rank = len(sides[0].shape)
    if kind == "SELECT" and len(condition.shape) == 1 and rank > 1:
        condition = replace(condition, shape=(*condition.shape, *(1,) * (rank - 1)))
    return (condition, *sides)
