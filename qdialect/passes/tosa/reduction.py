"""Reductions along one axis, which stays with one element, and the position of the largest element."""

from __future__ import annotations

import numpy as np

from qdialect import dialect as qnn
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa.conversion import Conversion, converts, integer_attribute, mode, require, result_element
from qdialect.passes.tosa.elementwise import apply, compare, convert, filled, resized, select, spread


def _reduced(op_class: type[qnn.QnnOp], value: ir.Value, axis: int, keep_dims: bool = True) -> ir.Value:
    reduced = qnn.build(op_class, value, element=element_of(value.type), axes=(axis,), keep_dims=keep_dims)
    return reduced.operation.results[0]


@converts("tosa.reduce_max", "tosa.reduce_min")
def _extreme(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value, axis = conversion.value(op.operands[0]), integer_attribute(op, "axis")
    element, is_max = element_of(value.type), op.name == "tosa.reduce_max"
    if element == "f32":
        return _extreme_float(op, value, axis, is_max)
    if element in ("i8", "ui8"):
        return _reduced(qnn.ReduceMaxOp if is_max else qnn.ReduceMinOp, value, axis)
    return resized(_reduced(qnn.IntMaxOp if is_max else qnn.IntMinOp, resized(value, "i32"), axis), element)


def _extreme_float(op: ir.Operation, value: ir.Value, axis: int, is_max: bool) -> ir.Value:
    """NaN where there is one; with the nan_mode IGNORE where there is nothing else."""
    op_class = qnn.F32MaxOp if is_max else qnn.F32MinOp
    if mode(op, "nan_mode") != "IGNORE":
        return _reduced(op_class, value, axis)
    is_number = compare("eq", value, value)
    extreme = _reduced(op_class, select(is_number, value, -np.inf if is_max else np.inf), axis)
    has_number = compare("ne", _reduced(qnn.IntMaxOp, convert("arith.extui", is_number, "i32"), axis), 0)
    return select(has_number, extreme, np.nan)


@converts("tosa.reduce_sum", "tosa.reduce_product")
def _sum(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Of floats in the order of `qnn.f32_sum`, as TOSA leaves it open; of integers wrapping around."""
    value, axis = conversion.value(op.operands[0]), integer_attribute(op, "axis")
    if element_of(value.type) == "f32":
        return _reduced(qnn.F32SumOp if op.name == "tosa.reduce_sum" else qnn.F32ProdOp, value, axis)
    element = element_of(value.type)
    require(op.name == "tosa.reduce_sum" and element == "i32", f"must be on f32 or sum i32, but got {element}")
    return _reduced(qnn.IntSumOp, value, axis)


@converts("tosa.reduce_all", "tosa.reduce_any")
def _of_booleans(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = convert("arith.extui", conversion.value(op.operands[0]), "i32")
    op_class = qnn.IntMinOp if op.name == "tosa.reduce_all" else qnn.IntMaxOp
    return compare("ne", _reduced(op_class, value, integer_attribute(op, "axis")), 0)


@converts("tosa.argmax")
def _argmax(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """The first of equal elements; of floats the first NaN, with the nan_mode IGNORE the first of the others."""
    value, axis = conversion.value(op.operands[0]), integer_attribute(op, "axis")
    require(result_element(op) == "i32", f"must give i32, but got {result_element(op)}")
    element = element_of(value.type)
    if element in ("i8", "ui8"):
        return qnn.build(qnn.ArgMaxOp, value, element="i32", axis=axis).output
    if element == "f32":
        return _first(_is_largest_float(op, value, axis), axis)
    wide = resized(value, "i32")
    return _first(compare("eq", wide, spread(_reduced(qnn.IntMaxOp, wide, axis), shape_of(wide.type))), axis)


def _is_largest_float(op: ir.Operation, value: ir.Value, axis: int) -> ir.Value:
    is_number = compare("eq", value, value)
    numbers = select(is_number, value, -np.inf)
    largest = spread(_reduced(qnn.F32MaxOp, numbers, axis), shape_of(value.type))
    is_largest = compare("eq", numbers, largest)
    if mode(op, "nan_mode") == "IGNORE":
        return is_largest
    # Where there is a NaN nothing else is the largest.
    has_nan = _reduced(qnn.IntMinOp, convert("arith.extui", is_number, "i32"), axis)
    is_nan = apply("arith.xori", is_number, True)
    return select(compare("eq", spread(has_nan, shape_of(value.type)), 0), is_nan, is_largest)


def _first(holds: ir.Value, axis: int) -> ir.Value:
    """The first position along `axis` where a boolean holds; there is one."""
    shape = shape_of(holds.type)
    lanes = np.arange(shape[axis], dtype=np.int32).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    positions = spread(constant(lanes), shape)
    return _reduced(qnn.IntMinOp, select(holds, positions, filled(shape[axis] - 1, positions)), axis, keep_dims=False)
