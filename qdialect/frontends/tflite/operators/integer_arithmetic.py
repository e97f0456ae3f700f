"""Arithmetic of i32 and i64 tensors: it wraps around; DIV cuts quotients towards zero, a quotient by zero is 0."""

from __future__ import annotations

import math

import tflite

from qdialect._mlir import ir
from qdialect.dialect import IntMaxOp, IntMinOp, IntProdOp, IntSumOp
from qdialect.dialect.integer_ops import IntegerReduceOp
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import operands
from qdialect.frontends.tflite.operators.f32 import activation_of
from qdialect.frontends.tflite.operators.plain import OfOne, OfTwo, binary, check_type, unary
from qdialect.frontends.tflite.operators.reduction import reduced_axes
from qdialect.frontends.tflite.operators.registry import Emission, imports_integers

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
