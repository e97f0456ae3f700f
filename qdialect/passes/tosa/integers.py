"""Integers and booleans that stand for themselves: arithmetic, bits, comparisons and choices."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.tosa.conversion import Conversion, converts, flag, mode, require, result_element
from qdialect.passes.tosa.upstream import apply, compare, resized, select, spread

_BITS = {
    "tosa.bitwise_and": "arith.andi",
    "tosa.bitwise_or": "arith.ori",
    "tosa.bitwise_xor": "arith.xori",
    "tosa.logical_and": "arith.andi",
    "tosa.logical_left_shift": "arith.shli",
    "tosa.logical_or": "arith.ori",
    "tosa.logical_right_shift": "arith.shrui",
    "tosa.logical_xor": "arith.xori",
}
_COMPARISONS = {"tosa.equal": "eq", "tosa.greater": "gt", "tosa.greater_equal": "ge"}
_ARITHMETIC = {"tosa.add": "add", "tosa.sub": "sub"}
_EXTREMES = {"tosa.maximum": "max", "tosa.minimum": "min"}


def operands_of_result(conversion: Conversion, op: ir.Operation, count: int) -> list[ir.Value]:
    """The first `count` operands, repeated up to the shape of the result."""
    shape = shape_of(op.results[0].type)
    return [spread(conversion.value(operand), shape) for operand in list(op.operands)[:count]]


@converts(*_BITS)
def _bits(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return apply(_BITS[op.name], *operands_of_result(conversion, op, 2))


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


@converts("tosa.intdiv")
def _quotient(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return apply("arith.divsi", *operands_of_result(conversion, op, 2))


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
