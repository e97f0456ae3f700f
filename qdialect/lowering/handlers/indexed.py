"""Gathers and scatters by indices that are known at run time alone: a copy of a row for each index."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import DynamicGatherOp, DynamicScatterOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.kernels.elementwise import MapOperand
from qdialect.lowering.kernels.indexing import Listed, Reduce, Rows, emit_gather, emit_scatter
from qdialect.lowering.program import BufferSlot, Kernel
from qdialect.lowering.text.scalar_body import Body
from qdialect.quant_math.choices import ScatterReduction


@lowers(DynamicGatherOp)
def _gather(lowering: GraphLowering, op: DynamicGatherOp) -> None:
    """The last dimension of a row has its spare lanes with it, where both sides have them."""
    data, indices, output = lowering.slot(op.data), lowering.slot(op.indices), lowering.result(op.output)
    before, after, axis = shape_of(op.data.type), shape_of(op.output.type), op.axis
    count = len(shape_of(op.indices.type))
    froms, tos = dim_strides(before, data.storage), dim_strides(after, output.storage)
    row = [*before[:axis], *before[axis + 1 :]]
    if axis < len(before) - 1:
        row[-1] = min(data.storage.pitch, output.storage.pitch)
    source = MapOperand(data, (*froms[:axis], *froms[axis + 1 :]), data.storage.origin)
    target = MapOperand(output, (*tos[:axis], *tos[axis + count :]), output.storage.origin)
    rows, listed = Rows(source, froms[axis], before[axis]), Listed(target, tos[axis : axis + count])
    kernel = Kernel(lowering.program)
    emit_gather(kernel, row, _whole(op.indices, indices), shape_of(op.indices.type), rows, listed)
    lowering.program.call(kernel, op.operation.name)


@lowers(DynamicScatterOp)
def _scatter(lowering: GraphLowering, op: DynamicScatterOp) -> None:
    data, indices, updates = (lowering.slot(value) for value in (op.data, op.indices, op.updates))
    output, shape = lowering.result(op.output), shape_of(op.data.type)
    lowering.copy(data, output, shape, f"{op.operation.name} data")
    froms, tos = dim_strides(shape_of(op.updates.type), updates.storage), dim_strides(shape, output.storage)
    source = MapOperand(updates, froms[1:], updates.storage.origin)
    target = MapOperand(output, tos[1:], output.storage.origin)
    rows, listed = Rows(target, tos[0], shape[0]), Listed(source, froms[:1])
    kernel = Kernel(lowering.program)
    reduce = _reduction(op.reduction, element_of(op.data.type))
    emit_scatter(kernel, shape[1:], _whole(op.indices, indices), shape_of(op.indices.type), rows, listed, reduce)
    lowering.program.call(kernel, op.operation.name)


def _reduction(reduction: ScatterReduction, element: str) -> Reduce | None:
    """How an update and the element before it become one."""
    if reduction is ScatterReduction.NONE:
        return None
    if reduction is ScatterReduction.ADD:
        return Body.add
    if reduction is ScatterReduction.MUL:
        return Body.multiply
    suffix = "imumf" if element == "f32" else "si"
    return lambda body, before, update: body.binary(f"arith.{reduction}{suffix}", before, update)


def _whole(value: ir.Value, slot: BufferSlot) -> MapOperand:
    return MapOperand(slot, dim_strides(shape_of(value.type), slot.storage), slot.storage.origin)
