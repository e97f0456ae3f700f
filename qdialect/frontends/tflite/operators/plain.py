"""Plans operators on plain numbers and booleans: comparisons, logic, SELECT, integer arithmetic and bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from qdialect.arithmetic import Rounding
from qdialect.dialect import RequantizeOp
from qdialect.frontends.building.checks import Shape, require
from qdialect.frontends.building.op_builder import Arithmetic, reduced_numbers
from qdialect.frontends.planning.elementwise import OF_ONE_INTEGER, PAIRS_OF_INTEGERS, Build, OfOne, OfTwo, on_bits
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.checks import EIGHT_BIT, check_plain, eight_bit, operands, sixteen_bit
from qdialect.frontends.tflite.operators.reduction import reduction_of
from qdialect.frontends.tflite.operators.registry import Building, Emitter, imports, imports_i16, imports_integers
from qdialect.ir._mlir import ir


def elementwise(operator: Operator, tensors: Sequence[Tensor], build: Build) -> Building:
    """`build` of tensors that broadcast to the shape of the operator's output."""
    shape = operator.outputs[0].shape
    check_broadcast(tensors, shape)
    emitter = yield
    values = [emitter.broadcast(emitter.value(tensor), shape) for tensor in tensors]
    return on_bits(emitter, values, operator.outputs[0].element, build)


def unary(operator: Operator, data: Tensor, build: OfOne) -> Building:
    """`elementwise` of one tensor."""
    return elementwise(operator, [data], lambda s, operands: build(s, operands[0]))


def binary(operator: Operator, sides: Sequence[Tensor], build: OfTwo) -> Building:
    """`elementwise` of two tensors."""
    return elementwise(operator, sides, lambda s, operands: build(s, operands[0], operands[1]))


def check_broadcast(tensors: Sequence[Tensor], shape: Shape) -> None:
    """All tensors together broadcast to `shape`; raises `UnsupportedError`."""
    try:
        fits = np.broadcast_shapes(*(tensor.shape for tensor in tensors)) == shape
    except ValueError:
        fits = False
    require(fits, f"inputs must broadcast to {list(shape)}, but got {[list(tensor.shape) for tensor in tensors]}")


def check_type(tensors: Sequence[Tensor], elements: Sequence[str]) -> None:
    """All tensors have one element type, which is one of `elements`."""
    found = {tensor.element for tensor in tensors}
    require(len(found) == 1, f"inputs must be of one type, but got {' and '.join(sorted(found))}")
    (element,) = found
    require(element in elements, f"inputs must be {', '.join(elements)}, but got {element}")


# Comparisons, which give booleans, operators on booleans, and SELECT by them.

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
def _comparison(operator: Operator) -> Building:
    """Of floats no comparison with NaN holds but NOT_EQUAL."""
    sides, predicate = operands(operator, 2), COMPARISONS[operator.kind]
    if sides[0].element in EIGHT_BIT:
        return _quantized_comparison(operator, sides, predicate)
    check_type(sides, ("f32", "i32", "i64", *(("i1",) if predicate in ("eq", "ne") else ())))
    return binary(operator, sides, lambda s, lhs, rhs: s.compare(predicate, lhs, rhs))


def _quantized_comparison(operator: Operator, sides: Sequence[Tensor], predicate: str) -> Building:
    """Both sides in steps of 1/256, each rescaled by itself (TFLite ComparisonWithScaling)."""
    for side, what in zip(sides, ("left operand", "right operand"), strict=True):
        eight_bit(side, what)
        require(side.scale < 1, f"{what} scale must be below 1, but got {side.scale}")
    check_type(sides, EIGHT_BIT)
    shape = operator.outputs[0].shape
    check_broadcast(sides, shape)

    def rescaled(emitter: Emitter, side: Tensor) -> ir.Value:
        # The values without their zero point, as i32.
        s, value = Arithmetic(emitter, is_unsigned=side.element == "ui8"), emitter.without_sign(emitter.value(side))
        value = s.op("arith.addi", s.resize(value, "i32"), -side.zero_point)
        value = Arithmetic(emitter).op("arith.muli", value, 1 << _FRACTION_BITS)
        how: dict[str, Any] = {"rounding": Rounding.FIXED32_DOUBLE, "output_scale": 1.0, "output_zero_point": 0}
        return emitter.build(RequantizeOp, value, element="i32", input_scale=side.scale, **how)

    emitter = yield
    values = [emitter.broadcast(rescaled(emitter, side), shape) for side in sides]
    return Arithmetic(emitter).compare(predicate, *values)


@imports(*_LOGIC)
def _logic(operator: Operator) -> Building:
    sides, name = operands(operator, 2), _LOGIC[operator.kind]
    check_type(sides, ("i1",))
    return binary(operator, sides, lambda s, lhs, rhs: s.op(name, lhs, rhs))


@imports("LOGICAL_NOT")
def _not(operator: Operator) -> Building:
    (data,) = operands(operator, 1)
    check_type([data], ("i1",))
    return unary(operator, data, lambda s, x: s.op("arith.xori", x, 1))


@imports("SELECT", "SELECT_V2")
@imports_i16("SELECT", "SELECT_V2")
def _select(operator: Operator) -> Building:
    """Elements of the first tensor where the condition holds, of the second elsewhere; they keep their numbers.

    Those of 16 bits are copied whatever they stand for: converters give each of the three tensors a scale of its own.
    SELECT takes a condition of one dimension along the first of the others, not along their last.
    """
    condition, first, second = operands(operator, 3)
    require(condition.element == "i1", f"condition must be i1, but got {condition.element}")
    output = operator.outputs[0]
    taken = ("f32", "i8", "ui8", "i1", "i16", "i32", "i64")
    require(output.element in taken, f"output must be {', '.join(taken)}, but got {output.element}")
    for tensor in (first, second):
        if output.element == "i16":
            sixteen_bit(tensor, "operand")
            sixteen_bit(output, "operand")
        else:
            checks.same_content(tensor, output)
    rank = len(first.shape)
    if operator.kind == "SELECT" and len(condition.shape) == 1 and rank > 1:
        condition = replace(condition, shape=(*condition.shape, *(1,) * (rank - 1)))
    tensors = (condition, first, second)
    check_broadcast(tensors, output.shape)
    emitter = yield
    values = [emitter.broadcast(emitter.reshape(emitter.value(t), t.shape), output.shape) for t in tensors]
    return on_bits(emitter, values, output.element, lambda s, parts: s.select(*parts))


# Comparisons of 16-bit values.


@imports_i16(*COMPARISONS)
def _comparison_i16(operator: Operator) -> Building:
    """Quantized values are compared as they are, which means something where both scales are equal."""
    lhs, rhs = operands(operator, 2)
    found = [sixteen_bit(side, "input").scale for side in (lhs, rhs)]
    require(found[0] == found[1], f"inputs must have one scale, but got {found[0]} and {found[1]}")
    predicate = COMPARISONS[operator.kind]
    return binary(operator, (lhs, rhs), lambda s, x, y: s.compare(predicate, x, y))


# REDUCE_ANY and REDUCE_ALL of booleans over axes.

_LOGICAL_REDUCTIONS = {"REDUCE_ALL": "min", "REDUCE_ANY": "max"}


@imports(*_LOGICAL_REDUCTIONS)
def _logical_reduction(operator: Operator) -> Building:
    """The smallest, or the largest, of 0 for false and 1 for true."""
    data, axes, keep_dims = reduction_of(operator)
    check_type((data, operator.outputs[0]), ("i1",))
    emitter = yield
    s = Arithmetic(emitter)
    number = s.resize(emitter.value(data), "i16")
    return s.compare("ne", reduced_numbers(emitter, _LOGICAL_REDUCTIONS[operator.kind], number, axes, keep_dims), 0)


# Arithmetic of i32 and i64 tensors: it wraps around; DIV cuts quotients towards zero, a quotient by zero is 0.

_INTEGERS = ("i32", "i64")


_NAMES = {"DIV": "trunc_divide", "FLOOR_DIV": "floor_divide", "FLOOR_MOD": "remainder"}
"""Of functions whose name is not the operator's."""


def _square_difference(s: Arithmetic, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    difference = s.op("arith.subi", lhs, rhs)
    return s.op("arith.muli", difference, difference)


@imports_integers("ADD", *_NAMES, "MAXIMUM", "MINIMUM", "MUL", "SQUARED_DIFFERENCE", "SUB")
def _pair(operator: Operator) -> Building:
    sides = operands(operator, 2)
    check_type((*sides, operator.outputs[0]), _INTEGERS)
    check_plain(operator)
    divisor = sides[1].data if operator.kind in _NAMES else None
    require(divisor is None or bool(divisor.all()), "divisor must not be 0")
    is_square = operator.kind == "SQUARED_DIFFERENCE"
    name = _NAMES.get(operator.kind, operator.kind.lower())
    return binary(operator, sides, _square_difference if is_square else PAIRS_OF_INTEGERS[name])


@imports_integers("ABS", "NEG", "SIGN")
def _of_one(operator: Operator) -> Building:
    (data,) = operands(operator, 1)
    check_type((data, operator.outputs[0]), _INTEGERS)
    return unary(operator, data, OF_ONE_INTEGER[operator.kind.lower()])


@imports_integers("MEAN")
def _mean(operator: Operator) -> Building:
    """The sum in 64 bits over the number of elements, cut towards zero."""
    data, axes, keep_dims = reduction_of(operator)
    check_type((data, operator.outputs[0]), _INTEGERS)
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
        held = count if s.is_unsigned else s.op("arith.maxsi", count, 0)
        return s.op("arith.shr{s}i", bits, s.op("arith.min{s}i", held, last))

    if operator.kind == "BITWISE_XOR":
        return binary(operator, sides, lambda s, lhs, rhs: s.op("arith.xori", lhs, rhs))
    return binary(operator, sides, shifted)


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
