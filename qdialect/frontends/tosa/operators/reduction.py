"""Reductions along one axis, which stays with one element, and the position of the largest element."""

from __future__ import annotations

import numpy as np

from qdialect import dialect as qnn
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.building.checks import require
from qdialect.frontends.building.op_builder import Arithmetic, reduced_numbers
from qdialect.frontends.tosa.operators.conversion import Conversion, converts, integer, mode, result_element
from qdialect.ir._mlir import ir

_LEAST = {"max": -np.inf, "min": np.inf}
"""What is no extreme while there is a number."""


@converts("tosa.reduce_max", "tosa.reduce_min")
def _extreme(conversion: Conversion, op: ir.Operation) -> ir.Value:
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
