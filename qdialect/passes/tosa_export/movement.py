"""Exports data movement, concatenation, and rows at indices that are known at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic import QuantParams, elementwise
from qdialect.arithmetic.choices import ScatterReduction
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import dtype_of, element_of, range_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa_export import builder
from qdialect.passes.tosa_export.builder import apply, clamp, const, create, filled, select
from qdialect.passes.tosa_export.contraction import f32_weights
from qdialect.passes.tosa_export.export import EXPORTERS, Export, exports, require, shape_of_result, sign_of, signed
from qdialect.reference.evaluators import nearest_rows


def _part(export: Export, op: qnn.ConcatOp, index: int) -> ir.Value:
    source, target = op.inputs[index], dtype_of(op.output.type)
    values = builder.every_value(source.type)
    own = QuantParams(op.input_scales[index], op.input_zero_points[index])
    found = elementwise.concat(
        [values], [own], 0, op.output_params, range_of(op.output.type), op.rounding, op.multiplier
    )
    found = found.astype(target)
    held = export.value(source)
    if np.array_equal(signed(found), signed(values)):
        return held
    return create("table", [held, const(signed(found))], shape_of(held.type), "i8")


exports(qnn.ReshapeOp)(lambda export, op: builder.reshape(export.value(op.input), op.shape))
exports(qnn.TransposeOp)(lambda export, op: builder.transpose(export.value(op.input), op.permutation))
exports(qnn.BroadcastOp)(lambda export, op: builder.tile(export.value(op.input), op.shape))
exports(qnn.PadOp)(
    lambda export, op: builder.pad(export.value(op.input), op.low, op.high, op.value - sign_of(op.input.type))
)


@exports(qnn.ClipOp)
def _clip(export: Export, op: qnn.ClipOp) -> ir.Value:
    sign = sign_of(op.input.type)
    return builder.clamp(export.value(op.input), op.min - sign, op.max - sign)


@exports(qnn.SliceOp)
def _slice(export: Export, op: qnn.SliceOp) -> ir.Value:
    """Elements apart from each other are gathered, the others cut out before."""
    value = export.value(op.input)
    extents = [(size - 1) * stride + 1 for size, stride in zip(op.size, op.strides, strict=True)]
    value = builder.slice_of(value, op.begin, extents)
    for axis, (size, stride) in enumerate(zip(op.size, op.strides, strict=True)):
        if stride > 1 and size > 1:
            value = gathered(value, axis, [i * stride for i in range(size)])
    return value


@exports(qnn.GatherOp)
def _gather(export: Export, op: qnn.GatherOp) -> ir.Value:
    value, extent = export.value(op.input), shape_of(op.input.type)[op.axis]
    if list(op.indices) == list(reversed(range(extent))):
        return create("reverse", [value], shape_of_result(op), element_of(value.type), axis=op.axis)
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


exports(qnn.ConcatOp)(
    lambda export, op: builder.concatenate([_part(export, op, index) for index in range(len(op.inputs))], op.axis)
)


@EXPORTERS.register("tensor.concat")
def _tensor_concat(export: Export, op: ir.OpView) -> ir.Value:
    axis = ir.IntegerAttr(op.operation.attributes["dim"]).value
    return builder.concatenate([export.value(operand) for operand in op.operation.operands], axis)


@EXPORTERS.register("tensor.bitcast")
def _bitcast(export: Export, op: ir.OpView) -> ir.Value:
    """Between signed and unsigned bytes the sign bit of what is held changes."""
    source, target = (element_of(value.type) for value in (op.operation.operands[0], op.operation.results[0]))
    require({source, target} == {"i8", "ui8"}, f"must be between i8 and ui8, but got {source} to {target}")
    return builder.apply("bitwise_xor", export.value(op.operation.operands[0]), -128)


def _positions(export: Export, indices: ir.Value, extent: int) -> ir.Value:
    """Indices [1, W] from 0 on: negative ones count from the end, one outside is the nearest."""
    count, known = int(np.prod(shape_of(indices.type))), constant_value(indices)
    if known is not None:
        return builder.const(nearest_rows(known, extent).astype(np.int32).reshape(1, -1))
    value = builder.reshape(export.value(indices), (1, count))
    from_end = apply("add", value, extent)
    return clamp(select(apply("greater", filled(0, value), value), from_end, value), 0, extent - 1)


@exports(qnn.DynamicGatherOp)
def _dynamic_gather(export: Export, op: qnn.DynamicGatherOp) -> ir.Value:
    positions = _positions(export, op.indices, shape_of(op.data.type)[op.axis])
    return builder.reshape(gathered_rows(export.value(op.data), op.axis, positions), shape_of_result(op))


@exports(qnn.BlockGatherOp)
def _block_gather(export: Export, op: qnn.BlockGatherOp) -> ir.Value:
    table = f32_weights(export, op)
    rows = gathered_rows(const(table), 0, _positions(export, op.indices, len(table)))
    return builder.reshape(rows, shape_of_result(op))


@exports(qnn.DynamicScatterOp)
def _dynamic_scatter(export: Export, op: qnn.DynamicScatterOp) -> ir.Value:
    """SCATTER writes every row once."""
    require(op.reduction is ScatterReduction.NONE, f"reduction must be none, but got {op.reduction}")
    indices, extent = export.constant(op.indices, "indices"), shape_of(op.data.type)[0]
    rows = nearest_rows(indices, extent).astype(np.int32)
    require(len(np.unique(rows)) == rows.size, f"indices must name different rows, but got {indices.tolist()}")
    depth = int(np.prod(shape_of(op.data.type)[1:]))
    data = builder.reshape(export.value(op.data), (1, extent, depth))
    updates = builder.reshape(export.value(op.updates), (1, rows.size, depth))
    operands = [data, builder.const(rows.reshape(1, -1)), updates]
    written = create("scatter", operands, (1, extent, depth), element_of(data.type))
    return builder.reshape(written, shape_of_result(op))
