"""GATHER and SCATTER: rows of each batch at indices that are known at run time."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DynamicGatherOp, DynamicScatterOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.tosa.conversion import Conversion, converts
from qdialect.passes.tosa.upstream import apply, reshaped, spread


def _rows(conversion: Conversion, data: ir.Value, indices: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The rows of all batches as one table, and where each index [N, W] points to in it."""
    batches, rows, depth = shape_of(data.type)
    table = reshaped(conversion.value(data), (batches * rows, depth))
    positions = conversion.value(indices)
    if batches > 1:
        first = constant(np.arange(batches, dtype=np.int32).reshape(-1, 1) * np.int32(rows))
        positions = apply("arith.addi", positions, spread(first, shape_of(positions.type)))
    return table, reshaped(positions, (batches * shape_of(indices.type)[1],))


@converts("tosa.gather")
def _gather(conversion: Conversion, op: ir.Operation) -> ir.Value:
    table, positions = _rows(conversion, *list(op.operands)[:2])
    found = build(DynamicGatherOp, table, positions, element=element_of(table.type), axis=0).output
    return reshaped(found, shape_of(op.results[0].type))


@converts("tosa.scatter")
def _scatter(conversion: Conversion, op: ir.Operation) -> ir.Value:
    data, indices, updates = op.operands
    table, positions = _rows(conversion, data, indices)
    rows = reshaped(conversion.value(updates), (shape_of(positions.type)[0], shape_of(table.type)[1]))
    written = build(DynamicScatterOp, table, positions, rows, element=element_of(table.type)).output
    return reshaped(written, shape_of(op.results[0].type))
