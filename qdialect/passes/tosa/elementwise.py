"""Ops on elements at the same index, of 8-bit quantized values and of the 32-bit integers between two rescales."""

from __future__ import annotations

from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp, ClipOp, LutOp, build
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.tosa.conversion import Array, Conversion, converts, integer_attribute, require, result_element

_BINARY = {
    "tosa.add": "arith.addi",
    "tosa.maximum": "arith.maxsi",
    "tosa.minimum": "arith.minsi",
    "tosa.mul": "arith.muli",
    "tosa.sub": "arith.subi",
}


@converts("tosa.identity")
def _identity(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return conversion.value(op.operands[0])


@converts("tosa.clamp")
def _clamp(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    element = element_of(value.type)
    require(element.startswith(("i", "ui")), f"must clamp integers, but got {element}")
    low, high = integer_attribute(op, "min_val"), integer_attribute(op, "max_val")
    return build(ClipOp, value, element=element, min=low, max=high).output


@converts("tosa.table")
def _table(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Entries stand in the order of signed quantized values."""
    table = conversion.array(op.operands[1], "table")
    require(table.shape == (256,), f"table must have 256 entries, but got {table.size}")
    return _look_up(conversion, op, table)


@converts("tosa.negate")
def _negate(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """``z_o - (x - z_i)``, clamped: of 8-bit quantized values a table."""
    zero_points = [conversion.zero_point(op.operands[1 + i], name) for i, name in enumerate(("input1_zp", "output_zp"))]
    return _look_up(conversion, op, np.clip(sum(zero_points) - np.arange(-128, 128), -128, 127))


def _look_up(conversion: Conversion, op: ir.Operation, entries: Array) -> ir.Value:
    value, source = conversion.value(op.operands[0]), op.operands[0]
    require(element_of(value.type) == result_element(op) == "i8", f"must be from i8 to i8, but got {value.type}")
    # The first half belongs to negative quantized values, whose bit patterns are the larger ones.
    table = np.roll(entries.astype(np.int8), -128).view(np.uint8)
    scales: dict[str, Any] = {"input_scale": conversion.scale(source), "output_scale": conversion.scale(op.results[0])}
    return build(LutOp, value, element="i8", table=table, input_zero_point=0, output_zero_point=0, **scales).output


@converts(*_BINARY)
def _binary(conversion: Conversion, op: ir.Operation) -> ir.Value:
    require(result_element(op) == "i32", f"must be on i32, but got {result_element(op)}")
    if op.name == "tosa.mul":
        shift = conversion.zero_point(op.operands[2], "shift")
        require(shift == 0, f"shift must be 0, but got {shift}")
    shape = shape_of(op.results[0].type)
    operands = [_spread(conversion.value(operand), shape) for operand in list(op.operands)[:2]]
    created = ir.Operation.create(_BINARY[op.name], results=[operands[0].type], operands=operands)
    return created.results[0]


def _spread(value: ir.Value, shape: tuple[int, ...]) -> ir.Value:
    if shape_of(value.type) == shape:
        return value
    return build(BroadcastOp, value, element=element_of(value.type), shape=shape).output
