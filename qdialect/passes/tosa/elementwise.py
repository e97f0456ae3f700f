"""Converts functions of elements: of 8-bit values tables, of f32 values, integers and booleans upstream ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qdialect.arithmetic import activations
from qdialect.arithmetic.expressions import Expression, Input, fold
from qdialect.dialect import BroadcastOp, ClipOp, DynamicGatherOp, LutOp, ReshapeOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa.conversion import (
    Array,
    Conversion,
    UnsupportedError,
    converts,
    flag,
    integer_attribute,
    mode,
    require,
    result_element,
)

# Functions of one tensor: of 8-bit quantized values they are tables.

_FRACTION_BITS = 7


@converts("tosa.identity")
def _identity(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return conversion.value(op.operands[0])


@converts("tosa.clamp")
def _clamp(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    element = element_of(value.type)
    if element == "f32":
        return _clamp_floats(op, value)
    require(element in ELEMENT_RANGES, f"must clamp integers or f32, but got {element}")
    low, high = integer_attribute(op, "min_val"), integer_attribute(op, "max_val")
    return build(ClipOp, value, element=element, min=low, max=high).output


def _clamp_floats(op: ir.Operation, value: ir.Value) -> ir.Value:
    """NaN stays NaN; with the nan_mode IGNORE it becomes the smaller bound."""
    low, high = (ir.FloatAttr(op.attributes[name]).value for name in ("min_val", "max_val"))
    clamped = expression(Input().at_least(low).at_most(high), value)
    return select(compare("eq", value, value), clamped, low) if mode(op, "nan_mode") == "IGNORE" else clamped


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
    position = apply("arith.addi", resized(conversion.value(op.operands[0]), "i32"), 1 << 15)
    row = apply("arith.shrsi", position, _FRACTION_BITS)
    entries, slopes = (constant(np.ascontiguousarray(a, np.int32)) for a in (table[:-1], np.diff(table.astype(int))))
    base, slope = (build(DynamicGatherOp, one, row, element="i32", axis=0).output for one in (entries, slopes))
    fraction = apply("arith.andi", position, (1 << _FRACTION_BITS) - 1)
    return apply("arith.addi", apply("arith.shli", base, _FRACTION_BITS), apply("arith.muli", slope, fraction))


@converts("tosa.negate")
def _negate(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """``z_o - (x - z_i)``, clamped: of 8-bit quantized values a table."""
    value = conversion.value(op.operands[0])
    element = element_of(value.type)
    if element == "f32":
        return apply("arith.negf", value)
    zero_points = [conversion.zero_point(op.operands[1 + i], name) for i, name in enumerate(("input1_zp", "output_zp"))]
    if element == "i8":
        return _look_up(conversion, op, np.clip(sum(zero_points) - np.arange(-128, 128), -128, 127))
    if element not in ("i16", "i32"):
        raise UnsupportedError(f"must negate i8, i16, i32 or f32, but got {element}")
    low, high = ELEMENT_RANGES[element]
    negative = apply("arith.muli", resized(value, "i64"), -1)
    moved = apply("arith.addi", negative, sum(zero_points))
    return resized(apply("arith.minsi", apply("arith.maxsi", moved, low), high), element)


def _look_up(conversion: Conversion, op: ir.Operation, entries: Array) -> ir.Value:
    value, source = conversion.value(op.operands[0]), op.operands[0]
    require(element_of(value.type) == result_element(op) == "i8", f"must be from i8 to i8, but got {value.type}")
    # The first half belongs to negative quantized values, whose bit patterns are the larger ones.
    table = np.roll(entries.astype(np.int8), -128).view(np.uint8)
    scales: dict[str, Any] = {"input_scale": conversion.scale(source), "output_scale": conversion.scale(op.results[0])}
    return build(LutOp, value, element="i8", table=table, input_zero_point=0, output_zero_point=0, **scales).output


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
    return expression(_FORMULAS[op.name], value)


# CAST between integers, booleans and float32.


@converts("tosa.cast")
def _cast(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Integers lose high bits or gain the sign; floats go to the nearest integer, ties to even, or to the end.

    NaN, of which TOSA does not speak, becomes 0.
    """
    value, element = conversion.value(op.operands[0]), result_element(op)
    found = element_of(value.type)
    if found == element:
        return value
    if element == "i1":
        return compare("ne", value, 0)
    if found == "f32":
        return _nearest_integer(value, element)
    is_unsigned = found == "i1" or found.startswith("u")
    if element == "f32":
        return convert("arith.uitofp" if is_unsigned else "arith.sitofp", without_sign(value), element)
    return resized(without_sign(value), element, is_unsigned=is_unsigned)


def _nearest_integer(value: ir.Value, element: str) -> ir.Value:
    low, high = ELEMENT_RANGES[element]
    known = select(compare("eq", value, value), value, 0)
    # 2^31 - 1 is no float32: the end is taken once more where integers are exact.
    near = apply("arith.minimumf", apply("arith.maximumf", apply("math.roundeven", known), low), high)
    whole = convert("arith.fptosi", near, "i64")
    return resized(apply("arith.minsi", whole, high), element)


# Integers and booleans that stand for themselves: arithmetic, bits, comparisons and choices.

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
    return [spread(conversion.value(operand), shape) for operand in list(op.operands)[:count]]


@converts(*_BINARY)
def _binary(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return apply(_BINARY[op.name], *operands_of_result(conversion, op, 2))


@converts("tosa.bitwise_not", "tosa.logical_not")
def _complement(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    return apply("arith.xori", value, True if element_of(value.type) == "i1" else -1)


@converts("tosa.arithmetic_right_shift")
def _shifted(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """With rounding the last bit that is lost is added; by 0 none is lost."""
    value, amount = operands_of_result(conversion, op, 2)
    shifted = apply("arith.shrsi", value, amount)
    if not flag(op, "round"):
        return shifted
    # An amount of -1 is, without a sign, one that leaves nothing but the sign.
    before = apply("arith.shrsi", value, apply("arith.subi", amount, 1))
    lost = select(compare("gt", amount, 0), apply("arith.andi", before, 1), 0)
    return apply("arith.addi", shifted, lost)


@converts("tosa.clz")
def _leading_zeros(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return apply("math.ctlz", conversion.value(op.operands[0]))


@converts(*_COMPARISONS)
def _comparison(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return compare(_COMPARISONS[op.name], *operands_of_result(conversion, op, 2))


@converts("tosa.select")
def _choice(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return select(*operands_of_result(conversion, op, 3))


@converts("tosa.abs")
def _magnitude(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    return apply("math.absf" if element_of(value.type) == "f32" else "math.absi", value)


@converts(*_ARITHMETIC)
def _arithmetic(conversion: Conversion, op: ir.Operation) -> ir.Value:
    suffix = "f" if result_element(op) == "f32" else "i"
    return apply(f"arith.{_ARITHMETIC[op.name]}{suffix}", *operands_of_result(conversion, op, 2))


@converts(*_EXTREMES)
def _extreme(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Of floats NaN, where one is; with the nan_mode IGNORE the other one."""
    name, operands = _EXTREMES[op.name], operands_of_result(conversion, op, 2)
    if result_element(op) != "f32":
        return apply(f"arith.{name}si", *operands)
    extreme = apply(f"arith.{name}imumf", *operands)
    return _without_nan(extreme, *operands) if mode(op, "nan_mode") == "IGNORE" else extreme


def _without_nan(extreme: ir.Value, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    other = select(compare("ne", lhs, lhs), rhs, extreme)
    return select(compare("ne", rhs, rhs), lhs, other)


@converts("tosa.mul")
def _product(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Of integers in 32 bits; with a shift in 64, rounded up from the middle."""
    operands = operands_of_result(conversion, op, 2)
    if result_element(op) == "f32":
        return apply("arith.mulf", *operands)
    require(result_element(op) == "i32", f"must be on i32, but got {result_element(op)}")
    shift = conversion.zero_point(op.operands[2], "shift")
    require(0 <= shift <= 63, f"shift must be in [0, 63], but got {shift}")
    wide = "i64" if shift else "i32"
    product = apply("arith.muli", *(resized(operand, wide) for operand in operands))
    if shift == 0:
        return product
    nudged = apply("arith.addi", product, 1 << (shift - 1))
    return resized(apply("arith.shrsi", nudged, shift), "i32")


# Upstream ops on tensors of one shape, which plain integers, booleans and floats become.

_FLOAT_PREDICATES = {"eq": 1, "gt": 2, "ge": 3, "ne": 13}
_INTEGER_PREDICATES = {"eq": 0, "ne": 1, "lt": 2, "gt": 4, "ge": 5, "ult": 6}
_WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def apply(name: str, first: ir.Value, *others: ir.Value | float) -> ir.Value:
    """The element-wise op `name`; a number stands for a tensor of it, and the result has the type of `first`."""
    operands = [first, *(filled(other, first) for other in others)]
    return ir.Operation.create(name, results=[first.type], operands=operands).results[0]


def filled(number: ir.Value | float, like: ir.Value) -> ir.Value:
    """A tensor of the type of `like` whose elements are all `number`; itself where it is a tensor."""
    if isinstance(number, ir.Value):
        return number
    array = np.array(number, NUMPY_DTYPES[element_of(like.type)])
    return constant(np.broadcast_to(array, shape_of(like.type)) if shape_of(like.type) else array)


def compare(predicate: str, lhs: ir.Value, rhs: ir.Value | float) -> ir.Value:
    """i1 where ``lhs predicate rhs``: eq, ne, gt or ge, of integers lt and ult too; of floats ordered, but for ne."""
    is_float = element_of(lhs.type) == "f32"
    number = (_FLOAT_PREDICATES if is_float else _INTEGER_PREDICATES)[predicate]
    attributes = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)}
    bits = ir.RankedTensorType.get(list(shape_of(lhs.type)), ir.IntegerType.get_signless(1))
    name = "arith.cmpf" if is_float else "arith.cmpi"
    return ir.Operation.create(name, [bits], [lhs, filled(rhs, lhs)], attributes).results[0]


def select(condition: ir.Value, lhs: ir.Value, rhs: ir.Value | float) -> ir.Value:
    """`lhs` where the i1 tensor `condition` holds, `rhs` elsewhere."""
    return ir.Operation.create("arith.select", [lhs.type], [condition, lhs, filled(rhs, lhs)]).results[0]


def convert(name: str, value: ir.Value, element: str) -> ir.Value:
    """`value` by an upstream conversion to another element type."""
    type_ = ir.RankedTensorType.get(list(shape_of(value.type)), ir.Type.parse(element))
    return ir.Operation.create(name, results=[type_], operands=[value]).results[0]


def resized(value: ir.Value, element: str, *, is_unsigned: bool = False) -> ir.Value:
    """An integer of another width, by its sign or without; a boolean is 0 or 1."""
    found = element_of(value.type)
    if found == element:
        return value
    if _WIDTHS[found] > _WIDTHS[element]:
        return convert("arith.trunci", value, element)
    return convert("arith.extui" if is_unsigned or found == "i1" else "arith.extsi", value, element)


def without_sign(value: ir.Value) -> ir.Value:
    """The bits of an unsigned tensor, which upstream ops do not know; itself where it is not unsigned."""
    element = element_of(value.type)
    return convert("tensor.bitcast", value, element[1:]) if element.startswith("u") else value


def spread(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """`value` repeated up to `shape`; itself where it has that shape."""
    if shape_of(value.type) == tuple(shape):
        return value
    return build(BroadcastOp, value, element=element_of(value.type), shape=tuple(shape)).output


def reshaped(value: ir.Value, shape: tuple[int, ...]) -> ir.Value:
    """`value` in another shape."""
    return build(ReshapeOp, value, element=element_of(value.type), shape=shape).output


def expression(formula: Expression, *operands: ir.Value) -> ir.Value:
    """A function of f32 tensors of one shape, by the upstream ops of its tree."""
    first = operands[0]

    def node(name: str, values: Sequence[ir.Value]) -> ir.Value:
        if name == "arith.cmpf":
            return compare("gt", *values)
        return select(*values) if name == "arith.select" else apply(name, *values)

    return fold(formula, operands, None, lambda number: filled(number, first), node)


def concatenate(values: Sequence[ir.Value], axis: int) -> ir.Value:
    """Values of one element type side by side along `axis`, whatever their number."""
    shape = list(shape_of(values[0].type))
    shape[axis] = sum(shape_of(value.type)[axis] for value in values)
    type_ = ir.RankedTensorType.get(shape, ir.RankedTensorType(values[0].type).element_type)
    attributes = {"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)}
    return ir.Operation.create("tensor.concat", [type_], list(values), attributes).results[0]
