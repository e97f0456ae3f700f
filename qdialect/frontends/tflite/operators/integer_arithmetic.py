"""Arithmetic of i32 and i64 tensors: it wraps around; DIV cuts quotients towards zero, a quotient by zero is 0."""

from __future__ import annotations

import math

import tflite

from qdialect.dialect import IntMaxOp, IntMinOp, IntProdOp, IntSumOp
from qdialect.dialect.reduction_ops import IntegerReduceOp
from qdialect.frontends.building.checks import require
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.tflite.flatbuffer.model import Operator
from qdialect.frontends.tflite.operators.checks import operands
from qdialect.frontends.tflite.operators.f32 import activation_of
from qdialect.frontends.tflite.operators.plain import OfOne, OfTwo, binary, check_broadcast, check_type, spread, unary
from qdialect.frontends.tflite.operators.reduction import reduced_axes
from qdialect.frontends.tflite.operators.registry import Emission, Emitter, imports, imports_integers
from qdialect.ir._mlir import ir

INTEGERS = ("i32", "i64")


def _is_between(s: Arithmetic, lhs: ir.Value, rhs: ir.Value, rest: ir.Value) -> ir.Value:
    """Whether the quotient is negative and was cut."""
    differs = s.compare("lt", s.op("arith.xori", lhs, rhs), 0)
    return s.op("arith.andi", s.compare("ne", rest, 0), differs)


def _floor_divide(s: Arithmetic, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    quotient, rest = s.op("arith.div{s}i", lhs, rhs), s.op("arith.rem{s}i", lhs, rhs)
    return s.select(_is_between(s, lhs, rhs, rest), s.op("arith.addi", quotient, -1), quotient)


def _floor_modulo(s: Arithmetic, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """The remainder has the sign of the divisor."""
    rest = s.op("arith.rem{s}i", lhs, rhs)
    return s.select(_is_between(s, lhs, rhs, rest), s.op("arith.addi", rest, rhs), rest)


def _square_difference(s: Arithmetic, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    difference = s.op("arith.subi", lhs, rhs)
    return s.op("arith.muli", difference, difference)


_PAIRS: dict[str, OfTwo] = {
    "ADD": lambda s, lhs, rhs: s.op("arith.addi", lhs, rhs),
    "DIV": lambda s, lhs, rhs: s.op("arith.div{s}i", lhs, rhs),
    "FLOOR_DIV": _floor_divide,
    "FLOOR_MOD": _floor_modulo,
    "MAXIMUM": lambda s, lhs, rhs: s.op("arith.max{s}i", lhs, rhs),
    "MINIMUM": lambda s, lhs, rhs: s.op("arith.min{s}i", lhs, rhs),
    "MUL": lambda s, lhs, rhs: s.op("arith.muli", lhs, rhs),
    "SQUARED_DIFFERENCE": _square_difference,
    "SUB": lambda s, lhs, rhs: s.op("arith.subi", lhs, rhs),
}

_QUOTIENTS = ("DIV", "FLOOR_DIV", "FLOOR_MOD")


@imports_integers(*_PAIRS)
def _pair(operator: Operator) -> Emission:
    sides = operands(operator, 2)
    check_type((*sides, operator.outputs[0]), INTEGERS)
    activation = activation_of(operator)
    require(activation == tflite.ActivationFunctionType.NONE, f"fused activation {activation} is not supported")
    divisor = sides[1].data if operator.kind in _QUOTIENTS else None
    require(divisor is None or bool(divisor.all()), "divisor must not be 0")
    return binary(operator, sides, _PAIRS[operator.kind])


_OF_ONE: dict[str, OfOne] = {
    "ABS": lambda s, x: s.op("math.absi", x),
    "SIGN": lambda s, x: s.op("arith.min{s}i", s.op("arith.max{s}i", x, -1), 1),
    "NEG": lambda s, x: s.op("arith.addi", s.op("arith.xori", x, -1), 1),
}


@imports_integers(*_OF_ONE)
def _of_one(operator: Operator) -> Emission:
    (data,) = operands(operator, 1)
    check_type((data, operator.outputs[0]), INTEGERS)
    return unary(operator, data, _OF_ONE[operator.kind])


_REDUCTIONS: dict[str, type[IntegerReduceOp]] = {
    "REDUCE_MAX": IntMaxOp,
    "REDUCE_MIN": IntMinOp,
    "REDUCE_PROD": IntProdOp,
    "SUM": IntSumOp,
}


@imports_integers(*_REDUCTIONS)
def _reduction(operator: Operator) -> Emission:
    axes, keep_dims = reduced_axes(operator)
    data, _ = operands(operator, 2)
    how = {"axes": axes, "keep_dims": keep_dims}
    op_class = _REDUCTIONS[operator.kind]
    return lambda emitter: emitter.build(op_class, emitter.value(data), element=data.element, **how)


@imports_integers("MEAN")
def _mean(operator: Operator) -> Emission:
    """The sum in 64 bits over the number of elements, cut towards zero."""
    axes, keep_dims = reduced_axes(operator)
    data, _ = operands(operator, 2)
    check_type((data, operator.outputs[0]), INTEGERS)
    count = math.prod(data.shape[axis] for axis in axes)

    def emit(emitter: Emitter) -> ir.Value:
        s = Arithmetic(emitter)
        wide = s.resize(emitter.value(data), "i64")
        total = emitter.build(IntSumOp, wide, element="i64", axes=axes, keep_dims=keep_dims)
        return s.resize(s.op("arith.div{s}i", total, count), data.element)

    return emit


# BITWISE_XOR, RIGHT_SHIFT and BITCAST: operators on the bits of numbers, whatever these stand for.

_BITS = {"i8": 8, "ui8": 8, "i16": 16, "i32": 32}
_CASTS = {
    ("f32", "i32"): "arith.bitcast",
    ("i32", "f32"): "arith.bitcast",
    ("i8", "ui8"): "tensor.bitcast",
    ("ui8", "i8"): "tensor.bitcast",
}


@imports("BITWISE_XOR", "RIGHT_SHIFT")
def _pair_of_bits(operator: Operator) -> Emission:
    """A shift by more bits than there are is one by all but one, and by fewer than 0 is none."""
    sides, output = operands(operator, 2), operator.outputs[0]
    check_type((*sides, output), tuple(_BITS))
    check_broadcast(sides, output.shape)
    is_unsigned, last = output.element == "ui8", _BITS[output.element] - 1

    def emit(emitter: Emitter) -> ir.Value:
        s, signed = Arithmetic(emitter, is_unsigned), Arithmetic(emitter)
        lhs, rhs = (_signless(s, spread(emitter, emitter.value(side), output.shape)) for side in sides)
        if operator.kind == "BITWISE_XOR":
            result = s.op("arith.xori", lhs, rhs)
        else:
            count = s.op("arith.minui", rhs, last) if is_unsigned else _within_bits(signed, rhs, last)
            result = s.op("arith.shr{s}i", lhs, count)
        return s.convert("tensor.bitcast", result, "ui8") if is_unsigned else result

    return emit


def _within_bits(s: Arithmetic, count: ir.Value, last: int) -> ir.Value:
    return s.op("arith.minsi", s.op("arith.maxsi", count, 0), last)


def _signless(s: Arithmetic, value: ir.Value) -> ir.Value:
    return s.convert("tensor.bitcast", value, "i8") if s.is_unsigned else value


@imports("BITCAST")
def _bitcast(operator: Operator) -> Emission:
    (data,), output = operands(operator, 1), operator.outputs[0]
    types = data.element, output.element
    known = types[0] == types[1] or types in _CASTS
    require(known, f"must go between f32 and i32 or between i8 and ui8, but got {types[0]}, {types[1]}")
    found, wanted = math.prod(output.shape), math.prod(data.shape)
    require(found == wanted, f"output must have {wanted} elements, but got {found}")

    def emit(emitter: Emitter) -> ir.Value:
        value = emitter.reshape(emitter.value(data), output.shape)
        return value if types[0] == types[1] else emitter.convert(_CASTS[types], value, types[1])

    return emit


# ADD_N: the sum of any number of tensors, one after another.


@imports("ADD_N")
def _add_n(operator: Operator) -> Emission:
    """In the order of the inputs."""
    terms, output = operands(operator, 1, max(1, len(operator.inputs))), operator.outputs[0]
    check_type((*terms, output), ("f32", "i32"))
    for term in terms:
        require(term.shape == output.shape, f"inputs must be {list(output.shape)}, but got {list(term.shape)}")
    name = "arith.addf" if output.element == "f32" else "arith.addi"

    def emit(emitter: Emitter) -> ir.Value:
        s, (total, *others) = Arithmetic(emitter), [emitter.value(term) for term in terms]
        for other in others:
            total = s.op(name, total, other)
        return total

    return emit
