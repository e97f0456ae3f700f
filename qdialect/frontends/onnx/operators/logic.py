"""Comparisons, logic of booleans and bits, shifts, and Where."""

from __future__ import annotations

import math

from qdialect.frontends.building.checks import require
from qdialect.frontends.onnx.operators.quantization import f32_values_of, quantized_by
from qdialect.frontends.onnx.operators.registry import Call, imports, value_of
from qdialect.frontends.planning import elementwise
from qdialect.frontends.planning.elementwise import Arithmetic
from qdialect.frontends.planning.tensors import Tensor
from qdialect.ir._mlir import ir

_PREDICATES = {"Equal": "eq", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt", "LessOrEqual": "le"}


@imports(*_PREDICATES)
def _comparison(call: Call) -> Tensor:
    """Of floats no comparison with NaN holds."""
    values, predicate = [value_of(call, 0), value_of(call, 1)], _PREDICATES[call.node.kind]
    elementwise.common_element(values, (*elementwise.INTEGERS, "f32", *(("i1",) if predicate == "eq" else ())))
    return elementwise.binary(call, values, "i1", lambda s, lhs, rhs: s.compare(predicate, lhs, rhs))


@imports("IsNaN")
def _is_nan(call: Call) -> Tensor:
    value = value_of(call, 0)
    elementwise.common_element([value], ("f32",))
    return elementwise.unary(call, value, "i1", lambda s, x: s.compare("ne", x, x))


@imports("IsInf")
def _is_inf(call: Call) -> Tensor:
    value = value_of(call, 0)
    elementwise.common_element([value], ("f32",))
    signs = {"detect_negative": -math.inf, "detect_positive": math.inf}
    asked = [number for name, number in signs.items() if call.flag(name, 1)]
    require(bool(asked), "detect_negative and detect_positive must not both be 0")

    def build(s: elementwise.Arithmetic, x: ir.Value) -> ir.Value:
        return s.compare("eq", s.op("math.absf", x) if len(asked) > 1 else x, asked[-1])

    return elementwise.unary(call, value, "i1", build)


# And, Or, Xor and Not of booleans, and the same of the bits of integers.

_OPS = {"And": "arith.andi", "Or": "arith.ori", "Xor": "arith.xori"}


def _elements(call: Call) -> tuple[str, ...]:
    return elementwise.INTEGERS if call.node.kind.startswith("Bitwise") else ("i1",)


@imports(*_OPS, *(f"Bitwise{kind}" for kind in _OPS))
def _logic(call: Call) -> Tensor:
    values, name = [value_of(call, 0), value_of(call, 1)], _OPS[call.node.kind.removeprefix("Bitwise")]
    element = elementwise.common_element(values, _elements(call))
    return elementwise.binary(call, values, element, lambda s, lhs, rhs: s.op(name, lhs, rhs))


@imports("Not", "BitwiseNot")
def _not(call: Call) -> Tensor:
    value = value_of(call, 0)
    element = elementwise.common_element([value], _elements(call))
    ones = 1 if element == "i1" else -1
    return elementwise.unary(call, value, element, lambda s, x: s.op("arith.xori", x, ones))


# BitShift: the bits of unsigned integers, moved; a shift by their width or more leaves none.

_WIDTHS = {"ui8": 8, "ui16": 16}
_SHIFTS = {"LEFT": "arith.shli", "RIGHT": "arith.shrui"}


@imports("BitShift")
def _bit_shift(call: Call) -> Tensor:
    values, direction = [value_of(call, 0), value_of(call, 1)], call.attribute("direction", "")
    require(direction in _SHIFTS, f"direction must be LEFT or RIGHT, but got {direction}")
    element = elementwise.common_element(values, tuple(_WIDTHS))

    def build(s: elementwise.Arithmetic, bits: ir.Value, amount: ir.Value) -> ir.Value:
        # More than the width is undefined in an op.
        moved = s.op(_SHIFTS[direction], bits, s.op("arith.minui", amount, _WIDTHS[element] - 1))
        return s.select(s.compare("lt", amount, _WIDTHS[element]), moved, 0)

    return elementwise.binary(call, values, element, build)


# Where and QLinearWhere: one of two tensors, element by element.


@imports("Where")
def _where(call: Call) -> Tensor:
    """ONNX Runtime adds what is chosen of each tensor, with zeros elsewhere: a float -0 of the first becomes +0."""
    condition = value_of(call, 0)
    require(condition.element == "i1", f"condition must be i1, but got {condition.element}")
    values = [value_of(call, 1), value_of(call, 2)]
    element = elementwise.common_element(values, (*elementwise.INTEGERS, "i1", "f32"))

    def chosen(s: Arithmetic, holds: ir.Value, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        return s.select(holds, s.op("arith.addf", lhs, 0.0) if element == "f32" else lhs, rhs)

    return elementwise.tensor_of(elementwise.ternary(call, [condition, *values], element, chosen))


@imports("com.microsoft.QLinearWhere")
def _qlinear_where(call: Call) -> Tensor:
    """Both tensors are quantized as the result before one is chosen."""
    call.count(9)
    condition = value_of(call, 0)
    require(condition.element == "i1", f"condition must be i1, but got {condition.element}")
    element = call.value(1).element
    values = [quantized_by(call, f32_values_of(call, index, index + 1), 7, element) for index in (1, 4)]
    return elementwise.ternary(
        call, [condition, *values], element, lambda s, holds, lhs, rhs: s.select(holds, lhs, rhs)
    )
