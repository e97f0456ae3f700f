"""Converts data movement, also at indices known at run time: quantized values and their scales stay what they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from qdialect import dialect as qnn
from qdialect.dialect.op_base import MAX_VARIADIC
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.building.slices import gather
from qdialect.frontends.tosa.operators.conversion import Conversion, converts, integer
from qdialect.ir._mlir import ir

# A float32 holds every whole number up to there.
_MAX_WHOLE = 2**24


def _moved(conversion: Conversion, op: ir.Operation, op_class: type[qnn.QnnOp], **attributes: Any) -> ir.Value:
    value = conversion.value(op.operands[0])
    return conversion.build(op_class, value, element=element_of(value.type), **attributes)


@converts("tosa.reshape")
def _reshape(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return _moved(conversion, op, qnn.ReshapeOp, shape=shape_of(op.results[0].type))


@converts("tosa.transpose")
def _transpose(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return _moved(conversion, op, qnn.TransposeOp, permutation=tuple(ir.DenseI32ArrayAttr(op.attributes["perms"])))


@converts("tosa.pad")
def _pad(conversion: Conversion, op: ir.Operation) -> ir.Value:
    pairs = conversion.integers(op.operands[1], "padding")
    if not conversion.is_constant(op.operands[2]):
        return _pad_with(conversion, op, pairs, conversion.value(op.operands[2]))
    fill = conversion.array(op.operands[2], "pad_const")
    number = fill.astype(np.float64).item()
    if not number.is_integer() or (fill.dtype == np.float32 and abs(number) > _MAX_WHOLE):
        return _pad_with(conversion, op, pairs, conversion.value(op.operands[2]))
    return _moved(conversion, op, qnn.PadOp, low=pairs[::2], high=pairs[1::2], value=int(number))


def _pad_with(conversion: Conversion, op: ir.Operation, pairs: tuple[int, ...], fill: ir.Value) -> ir.Value:
    """With the one element of `fill`, which no attribute holds: concatenated parts."""
    value = conversion.value(op.operands[0])
    for axis, counts in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
        shape = list(shape_of(value.type))
        low, high = (_filled(conversion, fill, [*shape[:axis], count, *shape[axis + 1 :]]) for count in counts)
        parts = [*low, value, *high]
        value = conversion.concatenate(parts, axis) if len(parts) > 1 else value
    return value


def _filled(conversion: Conversion, fill: ir.Value, shape: list[int]) -> list[ir.Value]:
    """A tensor of one element repeated; nothing where it would be empty."""
    return [conversion.broadcast(conversion.reshape(fill, (1,) * len(shape)), tuple(shape))] if 0 not in shape else []


@converts("tosa.slice")
def _slice(conversion: Conversion, op: ir.Operation) -> ir.Value:
    begin, size = (conversion.integers(op.operands[1 + i], name) for i, name in enumerate(("start", "size")))
    return _moved(conversion, op, qnn.SliceOp, begin=begin, size=size, strides=(1,) * len(size))


@converts("tosa.reverse")
def _reverse(conversion: Conversion, op: ir.Operation) -> ir.Value:
    axis = integer(op, "axis")
    return gather(conversion, conversion.value(op.operands[0]), axis, range(shape_of(op.results[0].type)[axis])[::-1])


@converts("tosa.tile")
def _tile(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Each dimension gets one before it, along which it is repeated."""
    shape, multiples = shape_of(op.operands[0].type), conversion.integers(op.operands[1], "multiples")
    spread = tuple(extent for pair in zip(multiples, shape, strict=True) for extent in pair)
    value = conversion.reshape(conversion.value(op.operands[0]), tuple(extent for own in shape for extent in (1, own)))
    return conversion.reshape(conversion.broadcast(value, spread), shape_of(op.results[0].type))


@converts("tosa.concat")
def _concat(conversion: Conversion, op: ir.Operation) -> ir.Value:
    values = [conversion.value(operand) for operand in op.operands]
    axis = integer(op, "axis")
    if element_of(values[0].type) not in ("i8", "ui8") or len(values) > MAX_VARIADIC:
        return conversion.concatenate(values, axis)
    scale = conversion.scale(op.operands[0])
    return conversion.build(
        qnn.ConcatOp,
        *values,
        element=element_of(values[0].type),
        axis=axis,
        input_scales=(scale,) * len(values),
        input_zero_points=(0,) * len(values),
        output_scale=scale,
        output_zero_point=0,
    )


def _rows(conversion: Conversion, data: ir.Value, indices: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The rows of all batches as one table, and where each index [N, W] points to in it."""
    batches, rows, depth = shape_of(data.type)
    table = conversion.reshape(conversion.value(data), (batches * rows, depth))
    positions = conversion.value(indices)
    if batches > 1:
        first = conversion.constant(np.arange(batches, dtype=np.int32).reshape(-1, 1) * np.int32(rows))
        positions = conversion.upstream("arith.addi", positions, conversion.broadcast(first, shape_of(positions.type)))
    return table, conversion.reshape(positions, (batches * shape_of(indices.type)[1],))


@converts("tosa.gather")
def _gather(conversion: Conversion, op: ir.Operation) -> ir.Value:
    table, positions = _rows(conversion, *list(op.operands)[:2])
    found = conversion.build(qnn.DynamicGatherOp, table, positions, element=element_of(table.type), axis=0)
    return conversion.reshape(found, shape_of(op.results[0].type))


@converts("tosa.scatter")
def _scatter(conversion: Conversion, op: ir.Operation) -> ir.Value:
    data, indices, updates = op.operands
    table, positions = _rows(conversion, data, indices)
    rows = conversion.reshape(conversion.value(updates), (shape_of(positions.type)[0], shape_of(table.type)[1]))
    written = conversion.build(qnn.DynamicScatterOp, table, positions, rows, element=element_of(table.type))
    return conversion.reshape(written, shape_of(op.results[0].type))
