"""Integer range analysis: an interval that contains every element of a value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qdialect.ir._mlir import ir
from qdialect.lowering.ir import building as b

Interval = tuple[int, int]
"""Smallest and largest value, read as signed."""

_DEPTH = 12
_ARRAY_BITS = (8, 16, 32, 64)
"""Of integers whose constants NumPy reads as signed; it reads an i1 as 0 or 1, where true is -1."""
_F32_BITS = 24
"""Of the significand."""
_SAME_ELEMENTS = ("vector.broadcast", "vector.shape_cast", "vector.extract", "vector.transpose")


def interval(value: ir.Value, depth: int = _DEPTH) -> Interval:
    """An interval that contains the elements of an integer or a vector of integers; by default that of their type.

    It looks through at most `depth` ops.
    """
    owner = value.owner
    known = None if isinstance(owner, ir.Block) or not depth else _of_op(owner.operation, depth - 1)
    half = 2 ** (b.integer_bits(value.type) - 1)
    return known or (-half, half - 1)


def _of_op(op: ir.Operation, depth: int) -> Interval | None:
    if op.name == "arith.constant":
        return _of_constant(op.attributes["value"], b.integer_bits(op.results[0].type))
    if op.name in _SAME_ELEMENTS:
        return interval(op.operands[0], depth)
    if op.name == "arith.extui":
        found = interval(op.operands[0], depth)
        return found if found[0] >= 0 else (0, 2 ** b.integer_bits(op.operands[0].type) - 1)
    if op.name == "arith.extsi":
        return interval(op.operands[0], depth)
    if op.name == "arith.select":
        ends = [interval(operand, depth) for operand in list(op.operands)[1:]]
        return min(low for low, _ in ends), max(high for _, high in ends)
    if op.name in _BINARY:
        return _BINARY[op.name](*(interval(operand, depth) for operand in op.operands))
    return _of_arithmetic(op, depth)


def _of_arithmetic(op: ir.Operation, depth: int) -> Interval | None:
    """The interval of arithmetic that wraps."""
    if op.name in _ARITHMETIC:
        found = _ARITHMETIC[op.name](*(interval(operand, depth) for operand in op.operands))
        return found if is_held(found, b.integer_bits(op.results[0].type)) else None
    if op.name in _SHIFTS:
        (low, high), (shift, most) = (interval(operand, depth) for operand in op.operands)
        is_known = 0 <= shift == most < b.integer_bits(op.operands[0].type) and (op.name == _SIGNED_SHIFT or low >= 0)
        return (low >> shift, high >> shift) if is_known else None
    if op.name == "arith.trunci":
        return _narrowed(op, depth)
    return _of_float(op) if op.name == "arith.fptosi" else None


def is_held(found: Interval, bits: int) -> bool:
    """Whether signed integers of `bits` bits contain an interval."""
    return -(2 ** (bits - 1)) <= found[0] and found[1] < 2 ** (bits - 1)


def _narrowed(op: ir.Operation, depth: int) -> Interval | None:
    """The interval of a truncation; a shift before it may have filled in any upper bits."""
    wide, bits = op.operands[0], b.integer_bits(op.results[0].type)
    shift = next((one for name in _SHIFTS if (one := b.defining(wide, name))), None)
    low, high = interval(wide, depth)
    if shift is not None and depth:
        (first, last), (count, most) = (interval(operand, depth - 1) for operand in shift.operands)
        if 0 <= count == most <= b.integer_bits(wide.type) - bits:
            low, high = first >> count, last >> count
    return (low, high) if is_held((low, high), bits) else None


def _of_float(op: ir.Operation) -> Interval | None:
    """The interval of a conversion from floats: other floats have no defined value as integers."""
    type_ = op.operands[0].type
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    if not isinstance(element, ir.F32Type):
        return None
    bits = b.integer_bits(op.results[0].type)
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 2 ** max(bits - 1 - _F32_BITS, 0)


def _of_constant(attribute: ir.Attribute, bits: int) -> Interval | None:
    if isinstance(attribute, ir.IntegerAttr):
        return attribute.value, attribute.value
    if not isinstance(attribute, ir.DenseElementsAttr):
        return None
    if attribute.is_splat:
        number = ir.IntegerAttr(attribute.get_splat_value()).value
        return number, number
    if bits not in _ARRAY_BITS:
        return None
    numbers = np.array(attribute)
    return int(numbers.min()), int(numbers.max())


def _max_signed(one: Interval, other: Interval) -> Interval:
    return max(one[0], other[0]), max(one[1], other[1])


def _min_unsigned(one: Interval, other: Interval) -> Interval | None:
    """The unsigned minimum of two numbers, one of which is not negative, is at most that one."""
    bounds = [high for low, high in (one, other) if low >= 0]
    return (0, min(bounds)) if bounds else None


def _product(one: Interval, other: Interval) -> Interval:
    corners = [a * c for a in one for c in other]
    return min(corners), max(corners)


_SIGNED_SHIFT = "arith.shrsi"
_SHIFTS = (_SIGNED_SHIFT, "arith.shrui")
_ARITHMETIC: dict[str, Callable[[Interval, Interval], Interval]] = {
    "arith.addi": lambda one, other: (one[0] + other[0], one[1] + other[1]),
    "arith.subi": lambda one, other: (one[0] - other[1], one[1] - other[0]),
    "arith.muli": _product,
}
_BINARY: dict[str, Callable[[Interval, Interval], Interval | None]] = {
    "arith.maxsi": _max_signed,
    "arith.minsi": lambda one, other: (min(one[0], other[0]), min(one[1], other[1])),
    "arith.maxui": lambda one, other: _max_signed(one, other) if one[0] >= 0 and other[0] >= 0 else None,
    "arith.minui": _min_unsigned,
    # As unsigned, a number that is not negative is less than a negative one.
    "arith.andi": _min_unsigned,
}
