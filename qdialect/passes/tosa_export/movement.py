"""Data movement: elements stay what they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import (
    BroadcastOp,
    ClipOp,
    ConcatOp,
    GatherOp,
    PadOp,
    ReshapeOp,
    ResizeNearestOp,
    SliceOp,
    TransposeOp,
)
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.tosa.conversion import require
from qdialect.passes.tosa_export import builder
from qdialect.passes.tosa_export.builder import const, create
from qdialect.passes.tosa_export.concatenation import rescaled_parts
from qdialect.passes.tosa_export.export import Export, exports, exports_each, shape_of_result, sign_of


@exports(ReshapeOp)
def _reshape(export: Export, op: ReshapeOp) -> ir.Value:
    return builder.reshape(export.value(op.input), op.shape)


@exports(TransposeOp)
def _transpose(export: Export, op: TransposeOp) -> ir.Value:
    return builder.transpose(export.value(op.input), op.permutation)


@exports(BroadcastOp)
def _broadcast(export: Export, op: BroadcastOp) -> ir.Value:
    return builder.tile(export.value(op.input), op.shape)


@exports(PadOp)
def _pad(export: Export, op: PadOp) -> ir.Value:
    return builder.pad(export.value(op.input), op.low, op.high, op.value - sign_of(op.input.type))


@exports(ClipOp)
def _clip(export: Export, op: ClipOp) -> ir.Value:
    sign = sign_of(op.input.type)
    return builder.clamp(export.value(op.input), op.min - sign, op.max - sign)


@exports(SliceOp)
def _slice(export: Export, op: SliceOp) -> ir.Value:
    """Elements apart from each other are gathered, the others cut out before."""
    value = export.value(op.input)
    extents = [(size - 1) * stride + 1 for size, stride in zip(op.size, op.strides, strict=True)]
    value = builder.slice_of(value, op.begin, extents)
    for axis, (size, stride) in enumerate(zip(op.size, op.strides, strict=True)):
        if stride > 1 and size > 1:
            value = gathered(value, axis, [i * stride for i in range(size)])
    return value


@exports(GatherOp)
def _gather(export: Export, op: GatherOp) -> ir.Value:
    value, extent = export.value(op.input), shape_of(op.input.type)[op.axis]
    if list(op.indices) == list(reversed(range(extent))):
        return create("reverse", [value], shape_of_result(op), element_of(value.type), axis=f"{op.axis} : i32")
    return gathered(value, op.axis, op.indices)


def gathered(value: ir.Value, axis: int, indices: Sequence[int]) -> ir.Value:
    """The elements of `value` at constant `indices` along `axis`."""
    return gathered_rows(value, axis, const(np.array(indices, np.int32).reshape(1, -1)))


def gathered_rows(value: ir.Value, axis: int, indices: ir.Value) -> ir.Value:
    """The elements of `value` at `indices` [1, W] along `axis`: the rows of a matrix whose first dimension that is."""
    shape, count = shape_of(value.type), shape_of(indices.type)[1]
    order = [axis, *(i for i in range(len(shape)) if i != axis)]
    front = builder.transpose(value, order)
    depth = int(np.prod(shape)) // shape[axis]
    rows = builder.reshape(front, (1, shape[axis], depth))
    found = create("gather", [rows, indices], (1, count, depth), element_of(value.type))
    back = builder.reshape(found, [count, *(shape[i] for i in order[1:])])
    return builder.transpose(back, np.argsort(order).tolist())


@exports(ResizeNearestOp)
def _resize(export: Export, op: ResizeNearestOp) -> ir.Value:
    value = export.value(op.input)
    for axis, indices in enumerate(op.nearest_indices, start=1):
        value = gathered(value, axis, [int(index) for index in indices])
    return value


@exports(ConcatOp)
def _concat(export: Export, op: ConcatOp) -> ir.Value:
    return builder.concatenate(rescaled_parts(export, op), op.axis)


@exports_each("tensor.concat")
def _tensor_concat(export: Export, op: ir.OpView) -> ir.Value:
    axis = ir.IntegerAttr(op.operation.attributes["dim"]).value
    return builder.concatenate([export.value(operand) for operand in op.operation.operands], axis)


@exports_each("tensor.bitcast")
def _bitcast(export: Export, op: ir.OpView) -> ir.Value:
    """Between signed and unsigned bytes the sign bit of what is held changes."""
    source, target = (element_of(value.type) for value in (op.operation.operands[0], op.operation.results[0]))
    require({source, target} == {"i8", "ui8"}, f"must be between i8 and ui8, but got {source} to {target}")
    return builder.apply("bitwise_xor", export.value(op.operation.operands[0]), -128)
