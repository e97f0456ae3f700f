"""Reductions over axes, and indices of extremes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect._mlir import ir
from qdialect.dialect import (
    ArgMaxOp,
    ArgMinOp,
    F32ExtremeOp,
    F32MaxOp,
    F32MinOp,
    F32ProdOp,
    F32SumOp,
    IntMaxOp,
    IntMinOp,
    IntSumOp,
    ReduceMaxOp,
    ReduceMinOp,
)
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.tosa.conversion import require
from qdialect.passes.tosa_export import builder
from qdialect.passes.tosa_export.builder import apply, create, filled
from qdialect.passes.tosa_export.export import Export, exports, shape_of_result

_REDUCTIONS = {
    F32MaxOp: "max",
    F32MinOp: "min",
    IntMaxOp: "max",
    IntMinOp: "min",
    IntSumOp: "sum",
    ReduceMaxOp: "max",
    ReduceMinOp: "min",
}
Reduction = F32MaxOp | F32MinOp | IntMaxOp | IntMinOp | IntSumOp | ReduceMaxOp | ReduceMinOp


@exports(*_REDUCTIONS)
def _reduction(export: Export, op: Reduction) -> ir.Value:
    """Numbers and zero have the same extremes in TOSA, except that a NaN of any sign is both."""
    kind = _REDUCTIONS[type(op)]
    value = export.value(op.input)
    if isinstance(op, F32ExtremeOp) and op.nan_as_zero:
        value = builder.select(apply("equal", value, value), value, filled(0.0, value))
    found = builder.reduce(kind, value, op.axes, keep_dims=op.keep_dims)
    is_from_zero = isinstance(op, F32ExtremeOp) and op.from_zero
    return apply(f"{kind}imum", found, 0.0) if is_from_zero else found


@exports(F32ProdOp)
def _product(export: Export, op: F32ProdOp) -> ir.Value:
    """The reduced dimensions as one, the last, whose elements are taken in row-major order."""
    rows, extents = _rows(export, op)
    count = math.prod(shape_of(rows.type)[len(extents) :])
    found = builder.reduce("product", builder.reshape(rows, [*extents, count]), [len(extents)], keep_dims=True)
    return builder.reshape(found, shape_of_result(op))


@exports(F32SumOp)
def _sum(export: Export, op: F32SumOp) -> ir.Value:
    """By sums in order alone, those of each partial sum too; a sum starts from zero."""
    rows, extents = _rows(export, op)
    count, columns = op.partial_sums, shape_of(rows.type)[-1]
    if count == 1:
        total = _in_order(rows, extents)
    else:
        whole = columns // count * count
        total = _in_order(_in_order(_columns(rows, 0, whole), extents, count), extents)
        if whole < columns:
            total = apply("add", total, _in_order(_columns(rows, whole, columns), extents))
    # A sum of minus zeros is plus zero.
    return builder.reshape(apply("add", total, 0.0), shape_of_result(op))


def _rows(export: Export, op: F32SumOp | F32ProdOp) -> tuple[ir.Value, list[int]]:
    """The input with the reduced dimensions last, and the extents of the others."""
    value = export.value(op.input)
    shape = shape_of(value.type)
    kept = [i for i in range(len(shape)) if i not in op.axes]
    return builder.transpose(value, [*kept, *op.axes]), [shape[i] for i in kept]


def _columns(rows: ir.Value, begin: int, end: int) -> ir.Value:
    """Some of the last dimension."""
    *outer, _ = shape_of(rows.type)
    return builder.slice_of(rows, [*(0 for _ in outer), begin], [*outer, end - begin])


def _in_order(rows: ir.Value, extents: Sequence[int], lanes: int = 1) -> ir.Value:
    """[extents..., 1, lanes]: sums of every so many elements of each row, in row-major order.

    The dimension is not the last, along which an importer, ours too, may add in any order that is fast.
    """
    count = math.prod(shape_of(rows.type)[len(extents) :]) // lanes
    return builder.reduce("sum", builder.reshape(rows, [*extents, count, lanes]), [len(extents)], keep_dims=True)


@exports(ArgMaxOp, ArgMinOp)
def _arg(export: Export, op: ArgMaxOp | ArgMinOp) -> ir.Value:
    """Of the complement for the smallest; the last of equal ones is the first of the reversed row."""
    value = export.value(op.input)
    require(element_of(op.output.type) == "i32", f"result must be i32, but got {element_of(op.output.type)}")
    shape = shape_of(value.type)
    if isinstance(op, ArgMinOp):
        value = apply("bitwise_not", value)
    if op.last:
        value = create("reverse", [value], shape, "i8", axis=f"{op.axis} : i32")
    rest = [extent for i, extent in enumerate(shape) if i != op.axis]
    found = create("argmax", [value], rest, "i32", axis=f"{op.axis} : i32")
    if op.last:
        found = apply("sub", filled(shape[op.axis] - 1, found), found)
    return builder.reshape(found, shape_of_result(op))
