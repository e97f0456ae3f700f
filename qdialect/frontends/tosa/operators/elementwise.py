"""Converts functions of elements, and reductions: of 8-bit values tables and ops, of others upstream ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic import activations
from qdialect.arithmetic.expressions import Expression, Input
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.frontends.building.checks import Array, UnsupportedError, require
from qdialect.frontends.building.op_builder import Arithmetic, reduced_numbers
from qdialect.frontends.tosa.operators.conversion import Conversion, converts, flag, integer, mode, result_element
from qdialect.ir._mlir import ir

_FRACTION_BITS = 7


@converts("tosa.identity")
def _identity(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return conversion.value(op.operands[0])


@converts("tosa.clamp")
def _clamp(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    element = element_of(value.type)
    if element == "f32":
        return _clamp_floats(conversion, op, value)
    require(element in ELEMENT_RANGES, f"must clamp integers or f32, but got {element}")
    low, high = integer(op, "min_val"), integer(op, "max_val")
    return conversion.build(qnn.ClipOp, value, element=element, min=low, max=high)


def _clamp_floats(conversion: Conversion, op: ir.Operation, value: ir.Value) -> ir.Value:
    """NaN stays NaN; with the nan_mode IGNORE it becomes the smaller bound."""
    s = Arithmetic(conversion)
    low, high = (ir.FloatAttr(op.attributes[name]).value for name in ("min_val", "max_val"))
    clamped = conversion.expression(Input().at_least(low).at_most(high), value)
    return s.select(s.compare("eq", value, value), clamped, low) if mode(op, "nan_mode") == "IGNORE" else clamped


@converts("tosa.table")
def _table(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Entries stand in the order of signed quantized values; of 16-bit ones there is one for each 128."""
    table, element = conversion.array(op.operands[1], "table"), element_of(conversion.value(op.operands[0]).type)
    size = {"i8": 256, "i16": 513}.get(element)
    require(
        table.size == size, f"table must have 256 entries for i8 or 513 for i16, but got {table.size} for {element}"
    )
    return _look_up(conversion, op, table) if size == 256 else _interpolated(conversion, op, table)


def _interpolated(conversion: Conversion, op: ir.Operation, table: Array) -> ir.Value:
    """``128 * t[i] + (t[i + 1] - t[i]) * f`` with i from the upper 9 bits of the value and f from the lower 7."""
    s = Arithmetic(conversion)
    position = s.op("arith.addi", s.resize(conversion.value(op.operands[0]), "i32"), 1 << 15)
    row = s.op("arith.shrsi", position, _FRACTION_BITS)
    entries, slopes = (conversion.constant(a.astype(np.int32)) for a in (table[:-1], np.diff(table.astype(int))))
    base, slope = (conversion.build(qnn.DynamicGatherOp, one, row, element="i32", axis=0) for one in (entries, slopes))
    fraction = s.op("arith.andi", position, (1 << _FRACTION_BITS) - 1)
    return s.op("arith.addi", s.op("arith.shli", base, _FRACTION_BITS), s.op("arith.muli", slope, fraction))


@converts("tosa.negate")
def _negate(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """``z_o - (x - z_i)``, clamped: of 8-bit quantized values a table."""
    s, value = Arithmetic(conversion), conversion.value(op.operands[0])
    element = element_of(value.type)
    if element == "f32":
        return s.op("arith.negf", value)
    zero_points = [conversion.zero_point(op.operands[1 + i], name) for i, name in enumerate(("input1_zp", "output_zp"))]
    if element == "i8":
        return _look_up(conversion, op, np.clip(sum(zero_points) - np.arange(-128, 128), -128, 127))
    if element not in ("i16", "i32"):
        raise UnsupportedError(f"must negate i8, i16, i32 or f32, but got {element}")
    low, high = ELEMENT_RANGES[element]
    negative = s.op("arith.muli", s.resize(value, "i64"), -1)
    moved = s.op("arith.addi", negative, sum(zero_points))
    return s.resize(s.op("arith.minsi", s.op("arith.maxsi", moved, low), high), element)


def _look_up(conversion: Conversion, op: ir.Operation, entries: Array) -> ir.Value:
    value, source = conversion.value(op.operands[0]), op.operands[0]
    require(element_of(value.type) == result_element(op) == "i8", f"must be from i8 to i8, but got {value.type}")
    # The first half belongs to negative quantized values, whose bit patterns are the larger ones.
    table = np.roll(entries.astype(np.int8), -128).view(np.uint8)
    scales: dict[str, Any] = {"input_scale": conversion.scale(source), "output_scale": conversion.scale(op.results[0])}
    return conversion.build(
        qnn.LutOp, value, element="i8", table=table, input_zero_point=0, output_zero_point=0, **scales
    )


# Functions of f32 values, which become upstream ops: one kernel computes those that follow each other.
#
# TOSA leaves the last places of transcendental functions open; here they are the float32 functions of kernels, at most
# one unit of the last place from the truth.

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
    return conversion.expression(_FORMULAS[op.name], value)


@converts("tosa.cast")
def _cast(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Integers lose high bits or gain the sign; floats go to the nearest integer, ties to even, or to the end.

    NaN, of which TOSA does not speak, becomes 0.
    """
    value, element = conversion.value(op.operands[0]), result_element(op)
    found = element_of(value.type)
    if found == element:
        return value
    is_unsigned = found == "i1" or found.startswith("u")
    s, bits = Arithmetic(conversion, is_unsigned), conversion.without_sign(value)
    if element == "i1":
        return s.compare("ne", bits, 0)
    if found == "f32":
        return _nearest_integer(s, value, element)
    return (
        s.convert("arith.uitofp" if is_unsigned else "arith.sitofp", bits, element)
        if element == "f32"
        else s.resize(bits, element)
    )


def _nearest_integer(s: Arithmetic, value: ir.Value, element: str) -> ir.Value:
    low, high = ELEMENT_RANGES[element]
    known = s.select(s.compare("eq", value, value), value, 0)
    # 2^31 - 1 is no float32: the end is taken once more where integers are exact.
    near = s.op("arith.minimumf", s.op("arith.maximumf", s.op("math.roundeven", known), low), high)
    whole = s.convert("arith.fptosi", near, "i64")
    return s.resize(s.op("arith.minsi", whole, high), element)


_BINARY = {
    "tosa.bitwise_and": "arith.andi",
    "tosa.bitwise_or": "arith.ori",
    "tosa.bitwise_xor": "arith.xori",
    "tosa.intdiv": "arith.divsi",
    "tosa.logical_and": "arith.andi",
    "tosa.logical_left_shift": "arith.shli",
    "tosa.logical_or": "arith.ori",
    "tosa.logical_right_shift": "arith.shrui",
    "tosa.logical_xor": "arith.xori",
    "tosa.pow": "math.powf",
}
_COMPARISONS = {"tosa.equal": "eq", "tosa.greater": "gt", "tosa.greater_equal": "ge"}
_ARITHMETIC = {"tosa.add": "add", "tosa.sub": "sub"}
_EXTREMES = {"tosa.maximum": "max", "tosa.minimum": "min"}


def operands_of_result(conversion: Conversion, op: ir.Operation, count: int) -> list[ir.Value]:
    """The first `count` operands, repeated up to the shape of the result."""
    shape = shape_of(op.results[0].type)
    return [conversion.broadcast(conversion.value(operand), shape) for operand in list(op.operands)[:count]]


@converts(*_BINARY)
def _binary(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return Arithmetic(conversion).op(_BINARY[op.name], *operands_of_result(conversion, op, 2))


@converts("tosa.bitwise_not", "tosa.logical_not")
def _complement(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    return Arithmetic(conversion).op("arith.xori", value, True if element_of(value.type) == "i1" else -1)


@converts("tosa.arithmetic_right_shift")
def _shifted(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """With rounding the last bit that is lost is added; by 0 none is lost."""
    s = Arithmetic(conversion)
    value, amount = operands_of_result(conversion, op, 2)
    shifted = s.op("arith.shrsi", value, amount)
    if not flag(op, "round"):
        return shifted
    # An amount of -1 is, without a sign, one that leaves nothing but the sign.
    before = s.op("arith.shrsi", value, s.op("arith.subi", amount, 1))
    lost = s.select(s.compare("gt", amount, 0), s.op("arith.andi", before, 1), 0)
    return s.op("arith.addi", shifted, lost)


@converts("tosa.clz")
def _leading_zeros(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return Arithmetic(conversion).op("math.ctlz", conversion.value(op.operands[0]))


@converts(*_COMPARISONS)
def _comparison(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return Arithmetic(conversion).compare(_COMPARISONS[op.name], *operands_of_result(conversion, op, 2))


@converts("tosa.select")
def _choice(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return conversion.select(*operands_of_result(conversion, op, 3))


@converts("tosa.abs")
def _magnitude(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    return Arithmetic(conversion).op("math.absf" if element_of(value.type) == "f32" else "math.absi", value)


@converts(*_ARITHMETIC)
def _arithmetic(conversion: Conversion, op: ir.Operation) -> ir.Value:
    suffix = "f" if result_element(op) == "f32" else "i"
    return Arithmetic(conversion).op(f"arith.{_ARITHMETIC[op.name]}{suffix}", *operands_of_result(conversion, op, 2))


@converts(*_EXTREMES)
def _extreme(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Of floats NaN, where one is; with the nan_mode IGNORE the other one."""
    s, name, operands = Arithmetic(conversion), _EXTREMES[op.name], operands_of_result(conversion, op, 2)
    if result_element(op) != "f32":
        return s.op(f"arith.{name}si", *operands)
    extreme = s.op(f"arith.{name}imumf", *operands)
    if mode(op, "nan_mode") != "IGNORE":
        return extreme
    lhs, rhs = operands
    other = s.select(s.compare("ne", lhs, lhs), rhs, extreme)
    return s.select(s.compare("ne", rhs, rhs), lhs, other)


@converts("tosa.mul")
def _product(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Of integers in 32 bits; with a shift in 64, rounded up from the middle."""
    s, operands = Arithmetic(conversion), operands_of_result(conversion, op, 2)
    if result_element(op) == "f32":
        return s.op("arith.mulf", *operands)
    require(result_element(op) == "i32", f"must be on i32, but got {result_element(op)}")
    shift = conversion.zero_point(op.operands[2], "shift")
    require(0 <= shift <= 63, f"shift must be in [0, 63], but got {shift}")
    wide = "i64" if shift else "i32"
    product = s.op("arith.muli", *(s.resize(operand, wide) for operand in operands))
    if shift == 0:
        return product
    nudged = s.op("arith.addi", product, 1 << (shift - 1))
    return s.resize(s.op("arith.shrsi", nudged, shift), "i32")


# Reductions along one axis, which stays with one element, and the position of the largest element.

_LEAST = {"max": -np.inf, "min": np.inf}
"""What is no extreme while there is a number."""


@converts("tosa.reduce_max", "tosa.reduce_min")
def _extreme_along(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """NaN where there is one; with the nan_mode IGNORE where there is nothing else."""
    s, value, axis = Arithmetic(conversion), conversion.value(op.operands[0]), integer(op, "axis")
    element, kind = element_of(value.type), op.name.removeprefix("tosa.reduce_")
    if element in ("i8", "ui8"):
        op_class = qnn.ReduceMaxOp if kind == "max" else qnn.ReduceMinOp
        return conversion.build(op_class, value, element=element, axes=(axis,), keep_dims=True)
    if element != "f32":
        return s.resize(reduced_numbers(conversion, kind, s.resize(value, "i32"), (axis,)), element)
    if mode(op, "nan_mode") != "IGNORE":
        return reduced_numbers(conversion, kind, value, (axis,))
    is_number = s.compare("eq", value, value)
    extreme = reduced_numbers(conversion, kind, s.select(is_number, value, _LEAST[kind]), (axis,))
    has_number = s.compare("ne", reduced_numbers(conversion, "max", s.resize(is_number, "i32"), (axis,)), 0)
    return s.select(has_number, extreme, np.nan)


@converts("tosa.reduce_sum", "tosa.reduce_product")
def _sum(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Of floats in the order of `qnn.f32_sum`, as TOSA leaves it open; of integers wrapping around."""
    value, kind = conversion.value(op.operands[0]), "sum" if op.name == "tosa.reduce_sum" else "prod"
    element = element_of(value.type)
    is_known = element == "f32" or (kind, element) == ("sum", "i32")
    require(is_known, f"must be on f32 or sum i32, but got {element}")
    return reduced_numbers(conversion, kind, value, (integer(op, "axis"),))


@converts("tosa.reduce_all", "tosa.reduce_any")
def _of_booleans(conversion: Conversion, op: ir.Operation) -> ir.Value:
    s, kind = Arithmetic(conversion), "min" if op.name == "tosa.reduce_all" else "max"
    value = s.resize(conversion.value(op.operands[0]), "i32")
    return s.compare("ne", reduced_numbers(conversion, kind, value, (integer(op, "axis"),)), 0)


@converts("tosa.argmax")
def _argmax(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """The first of equal elements; of floats the first NaN, with the nan_mode IGNORE the first of the others."""
    value, axis = conversion.value(op.operands[0]), integer(op, "axis")
    require(result_element(op) == "i32", f"must give i32, but got {result_element(op)}")
    element = element_of(value.type)
    if element in ("i8", "ui8"):
        return conversion.build(qnn.ArgMaxOp, value, element="i32", axis=axis)
    if element == "f32":
        return _first(conversion, _is_largest_float(conversion, op, value, axis), axis)
    wide = Arithmetic(conversion).resize(value, "i32")
    return _first(conversion, conversion.compare("eq", wide, _along(conversion, "max", wide, axis)), axis)


def _along(conversion: Conversion, kind: str, value: ir.Value, axis: int) -> ir.Value:
    """The extreme along `axis`, at each element of it."""
    return conversion.broadcast(reduced_numbers(conversion, kind, value, (axis,)), shape_of(value.type))


def _is_largest_float(conversion: Conversion, op: ir.Operation, value: ir.Value, axis: int) -> ir.Value:
    s = Arithmetic(conversion)
    is_number = s.compare("eq", value, value)
    numbers = s.select(is_number, value, -np.inf)
    is_largest = s.compare("eq", numbers, _along(conversion, "max", numbers, axis))
    if mode(op, "nan_mode") == "IGNORE":
        return is_largest
    # Where there is a NaN nothing else is the largest.
    has_nan = _along(conversion, "min", s.resize(is_number, "i32"), axis)
    return s.select(s.compare("eq", has_nan, 0), s.op("arith.xori", is_number, True), is_largest)


def _first(conversion: Conversion, holds: ir.Value, axis: int) -> ir.Value:
    """The first position along `axis` where a boolean holds; there is one."""
    shape = shape_of(holds.type)
    lanes = np.arange(shape[axis], dtype=np.int32).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    positions = conversion.broadcast(conversion.constant(lanes), shape)
    return reduced_numbers(
        conversion, "min", conversion.select(holds, positions, shape[axis] - 1), (axis,), keep_dims=False
    )
