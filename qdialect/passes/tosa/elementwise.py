"""Functions of one tensor: of 8-bit quantized values they are tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import ClipOp, DynamicGatherOp, LutOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of
from qdialect.passes.tosa.conversion import (
    Array,
    Conversion,
    UnsupportedError,
    converts,
    integer_attribute,
    mode,
    require,
    result_element,
)
from qdialect.passes.tosa.upstream import apply, compare, resized, select

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
    clamped = apply("arith.minimumf", apply("arith.maximumf", value, low), high)
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
