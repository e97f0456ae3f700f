"""Rows at indices that are known at run time."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DynamicGatherOp, DynamicScatterOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.tosa.conversion import require
from qdialect.passes.tosa_export import builder
from qdialect.passes.tosa_export.builder import Array, apply, clamp, create, filled, select
from qdialect.passes.tosa_export.export import Export, exports, shape_of_result
from qdialect.passes.tosa_export.movement import gathered_rows
from qdialect.quant_math.choices import ScatterReduction


def _positions(export: Export, indices: ir.Value, extent: int) -> ir.Value:
    """Indices [1, W] from 0 on: negative ones count from the end, one outside is the nearest."""
    count, known = int(np.prod(shape_of(indices.type))), export.array(indices)
    if known is not None:
        return builder.const(_inside(known, extent).reshape(1, -1))
    value = builder.reshape(export.value(indices), (1, count))
    from_end = apply("add", value, extent)
    return clamp(select(apply("greater", filled(0, value), value), from_end, value), 0, extent - 1)


def _inside(indices: Array, extent: int) -> Array:
    return np.where(indices < 0, indices + extent, indices).clip(0, extent - 1).astype(np.int32)


@exports(DynamicGatherOp)
def _gather(export: Export, op: DynamicGatherOp) -> ir.Value:
    positions = _positions(export, op.indices, shape_of(op.data.type)[op.axis])
    return builder.reshape(gathered_rows(export.value(op.data), op.axis, positions), shape_of_result(op))


@exports(DynamicScatterOp)
def _scatter(export: Export, op: DynamicScatterOp) -> ir.Value:
    """SCATTER writes every row once."""
    require(op.reduction is ScatterReduction.NONE, f"reduction must be none, but got {op.reduction}")
    indices, extent = export.constant(op.indices, "indices"), shape_of(op.data.type)[0]
    rows = _inside(indices, extent)
    require(len(np.unique(rows)) == rows.size, f"indices must name different rows, but got {indices.tolist()}")
    depth = int(np.prod(shape_of(op.data.type)[1:]))
    data = builder.reshape(export.value(op.data), (1, extent, depth))
    updates = builder.reshape(export.value(op.updates), (1, rows.size, depth))
    operands = [data, builder.const(rows.reshape(1, -1)), updates]
    written = create("scatter", operands, (1, extent, depth), element_of(data.type))
    return builder.reshape(written, shape_of_result(op))
