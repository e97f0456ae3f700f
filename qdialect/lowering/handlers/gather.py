"""Gathers by constant indices: a strided copy for each arithmetic progression, or a loop over a table."""

from __future__ import annotations

from qdialect.dialect import GatherOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.kernels.elementwise import MapOperand
from qdialect.lowering.kernels.gathering import emit_gather


@lowers(GatherOp)
def _gather(lowering: GraphLowering, op: GatherOp) -> None:
    data, output = lowering.slot(op.input), lowering.result(op.output)
    before, after = shape_of(op.input.type), shape_of(op.output.type)
    is_channels_last = op.axis == len(before) - 1
    lanes = after[-1] if is_channels_last else min(data.storage.pitch, output.storage.pitch)
    source = MapOperand(data, dim_strides(before, data.storage), data.storage.origin)
    target = MapOperand(output, dim_strides(after, output.storage), output.storage.origin)
    shape = (*after[:-1], lanes)
    emit_gather(lowering.program, shape, source, target, op.axis, op.indices, op.operation.name)
