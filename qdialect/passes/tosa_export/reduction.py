"""Reductions over axes, and indices of extremes."""

from __future__ import annotations

import math

from qdialect._mlir import ir
from qdialect.dialect import (
    ArgMaxOp,
    ArgMinOp,
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
    return builder.reduce(_REDUCTIONS[type(op)], export.value(op.input), op.axes, keep_dims=op.keep_dims)


@exports(F32SumOp, F32ProdOp)
def _sum(export: Export, op: F32SumOp | F32ProdOp) -> ir.Value:
    """The reduced dimensions as one, the last, whose elements are taken in row-major order; a sum starts from zero."""
    value = export.value(op.input)
    shape = shape_of(value.type)
    kept = [i for i in range(len(shape)) if i not in op.axes]
    extents, count = [shape[i] for i in kept], math.prod(shape[i] for i in op.axes)
    rows = builder.reshape(builder.transpose(value, [*kept, *op.axes]), [*extents, count])
    name = "sum" if isinstance(op, F32SumOp) else "product"
    found = builder.reduce(name, rows, [len(extents)], keep_dims=True)
    # A sum of minus zeros is plus zero.
    total = apply("add", found, 0.0) if name == "sum" else found
    return builder.reshape(total, shape_of_result(op))


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
