"""Arithmetic of i32 and i64 tensors: it wraps around; DIV cuts quotients towards zero, a quotient by zero is 0."""

from __future__ import annotations

import math

from qdialect.frontends.building.checks import require
from qdialect.frontends.building.op_builder import Arithmetic, reduced_numbers
from qdialect.frontends.planning.elementwise import OF_ONE_INTEGER, PAIRS_OF_INTEGERS
from qdialect.frontends.tflite.flatbuffer.model import Operator
from qdialect.frontends.tflite.operators.checks import check_plain, operands
from qdialect.frontends.tflite.operators.plain import binary, check_type, unary
from qdialect.frontends.tflite.operators.reduction import reduction_of
from qdialect.frontends.tflite.operators.registry import Building, imports, imports_integers
from qdialect.ir._mlir import ir

INTEGERS = ("i32", "i64")


_NAMES = {"DIV": "trunc_divide", "FLOOR_DIV": "floor_divide", "FLOOR_MOD": "remainder"}
"""Of functions whose name is not the operator's."""


def _square_difference(s: Arithmetic, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    difference = s.op("arith.subi", lhs, rhs)
    return s.op("arith.muli", difference, difference)


@imports_integers("ADD", *_NAMES, "MAXIMUM", "MINIMUM", "MUL", "SQUARED_DIFFERENCE", "SUB")
def _pair(operator: Operator) -> Building:
    sides = operands(operator, 2)
    check_type((*sides, operator.outputs[0]), INTEGERS)
    check_plain(operator)
    divisor = sides[1].data if operator.kind in _NAMES else None
    require(divisor is None or bool(divisor.all()), "divisor must not be 0")
    is_square = operator.kind == "SQUARED_DIFFERENCE"
    name = _NAMES.get(operator.kind, operator.kind.lower())
    return binary(operator, sides, _square_difference if is_square else PAIRS_OF_INTEGERS[name])


@imports_integers("ABS", "NEG", "SIGN")
def _of_one(operator: Operator) -> Building:
    (data,) = operands(operator, 1)
    check_type((data, operator.outputs[0]), INTEGERS)
    return unary(operator, data, OF_ONE_INTEGER[operator.kind.lower()])


@imports_integers("MEAN")
def _mean(operator: Operator) -> Building:
    """The sum in 64 bits over the number of elements, cut towards zero."""
    data, axes, keep_dims = reduction_of(operator)
    check_type((data, operator.outputs[0]), INTEGERS)
    count = math.prod(data.shape[axis] for axis in axes)
    emitter = yield
    s = Arithmetic(emitter)
    wide = s.resize(emitter.value(data), "i64")
    total = reduced_numbers(emitter, "sum", wide, axes, keep_dims)
    return s.resize(s.op("arith.div{s}i", total, count), data.element)


# BITWISE_XOR, RIGHT_SHIFT and BITCAST: operators on the bits of numbers, whatever these stand for.

_BITS = {"i8": 8, "ui8": 8, "i16": 16, "i32": 32}
_CASTS = {
    ("f32", "i32"): "arith.bitcast",
    ("i32", "f32"): "arith.bitcast",
    ("i8", "ui8"): "tensor.bitcast",
    ("ui8", "i8"): "tensor.bitcast",
}


@imports("BITWISE_XOR", "RIGHT_SHIFT")
def _pair_of_bits(operator: Operator) -> Building:
    """A count above the number of bits shifts by all bits but one, and one below 0 by no bits."""
    sides, output = operands(operator, 2), operator.outputs[0]
    check_type((*sides, output), tuple(_BITS))
    last = _BITS[output.element] - 1

    def shifted(s: Arithmetic, bits: ir.Value, count: ir.Value) -> ir.Value:
        held = s.op("arith.minui", count, last) if s.is_unsigned else _within_bits(s, count, last)
        return s.op("arith.shr{s}i", bits, held)

    return binary(operator, sides, _exclusive if operator.kind == "BITWISE_XOR" else shifted)


def _exclusive(s: Arithmetic, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    return s.op("arith.xori", lhs, rhs)


def _within_bits(s: Arithmetic, count: ir.Value, last: int) -> ir.Value:
    return s.op("arith.minsi", s.op("arith.maxsi", count, 0), last)


@imports("BITCAST")
def _bitcast(operator: Operator) -> Building:
    (data,), output = operands(operator, 1), operator.outputs[0]
    types = data.element, output.element
    known = types[0] == types[1] or types in _CASTS
    require(known, f"must go between f32 and i32 or between i8 and ui8, but got {types[0]}, {types[1]}")
    found, wanted = math.prod(output.shape), math.prod(data.shape)
    require(found == wanted, f"output must have {wanted} elements, but got {found}")
    emitter = yield
    value = emitter.reshape(emitter.value(data), output.shape)
    return value if types[0] == types[1] else emitter.convert(_CASTS[types], value, types[1])


# ADD_N: the sum of any number of tensors, one after another.


@imports("ADD_N")
def _add_n(operator: Operator) -> Building:
    """In the order of the inputs."""
    terms, output = operands(operator, 1, max(1, len(operator.inputs))), operator.outputs[0]
    check_type((*terms, output), ("f32", "i32"))
    for term in terms:
        require(term.shape == output.shape, f"inputs must be {list(output.shape)}, but got {list(term.shape)}")
    name = "arith.addf" if output.element == "f32" else "arith.addi"
    emitter = yield
    s, (total, *others) = Arithmetic(emitter), [emitter.value(term) for term in terms]
    for other in others:
        total = s.op(name, total, other)
    return total
