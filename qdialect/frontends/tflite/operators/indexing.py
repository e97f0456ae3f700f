"""Elements at indices that are known at run time: GATHER, GATHER_ND, REVERSE_SEQUENCE and DYNAMIC_UPDATE_SLICE.

Every one is a gather of rows, or a scatter of rows, of a tensor whose leading dimensions are taken as one.  LiteRT
fails at an index outside of its dimension; here it reads another element of the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tflite

from qdialect._mlir import ir
from qdialect.dialect import DynamicGatherOp, DynamicScatterOp, TransposeOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import Array, require
from qdialect.frontends.slices import Slice, take_slices
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Shape, Tensor
from qdialect.frontends.tflite.operators.checks import operands, same_content
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.operators.slicing import axis_of
from qdialect.frontends.tflite.reader import read_options

_INDICES = ("i32", "i64")


def check_index_type(tensor: Tensor, what: str) -> None:
    """Raises `UnsupportedError` for indices of another type than i32 and i64."""
    require(tensor.element in _INDICES, f"{what} must be i32 or i64, but got {tensor.element}")


def gather_at_run_time(data: Tensor, positions: Tensor, axis: int, batch_dims: int) -> Emission:
    """GATHER: the dimensions of the indices after `batch_dims`, which both tensors share, replace `axis`."""
    shape, indices = data.shape, positions.shape
    check_index_type(positions, "indices")
    shared = 0 <= batch_dims <= min(axis, len(indices)) and shape[:batch_dims] == indices[:batch_dims]
    shapes = f"{list(shape)} and {list(indices)}"
    require(shared, f"input and indices must share {batch_dims} leading dimensions before the axis, but got {shapes}")
    batch, extent = math.prod(shape[:batch_dims]), shape[axis]
    between, after = shape[batch_dims:axis], shape[axis + 1 :]
    result = (*shape[:axis], *indices[batch_dims:], *after)

    def emit(emitter: Emitter) -> ir.Value:
        value, where = emitter.value(data), emitter.value(positions)
        if not batch_dims:
            return emitter.build(DynamicGatherOp, value, where, element=data.element, axis=axis)
        # A row of the whole for each index of each batch and of what lies between.
        middle, picked = math.prod(between), math.prod(indices[batch_dims:])
        rows = np.arange(batch * middle).reshape(batch, middle, 1) * extent
        flat = emitter.reshape(where, (batch, 1, picked))
        at = _sum(emitter, _repeated(emitter, flat, middle), np.broadcast_to(rows, (batch, middle, picked)))
        table = emitter.reshape(value, (batch * middle * extent, *after))
        return emitter.reshape(_rows(emitter, table, at), result)

    return emit


def _repeated(emitter: Emitter, value: ir.Value, count: int) -> ir.Value:
    return emitter.concatenate([value] * count, 1) if count > 1 else value


def _sum(emitter: Emitter, indices: ir.Value, offsets: Array) -> ir.Value:
    dtype = np.int32 if element_of(indices.type) == "i32" else np.int64
    constant = emitter.constant(np.ascontiguousarray(offsets.astype(dtype)))
    return Arithmetic(emitter).op("arith.addi", indices, constant)


def _rows(emitter: Emitter, table: ir.Value, at: ir.Value) -> ir.Value:
    return emitter.build(DynamicGatherOp, table, at, element=element_of(table.type), axis=0)


@imports("GATHER_ND")
def _gather_nd(operator: Operator) -> Emission:
    """The last dimension of the indices names an element of the leading dimensions of the data."""
    data, positions = operands(operator, 2)
    same_content(data, operator.outputs[0])
    check_index_type(positions, "indices")
    require(len(positions.shape) >= 1, "indices must have at least 1 dimension")
    depth = positions.shape[-1]
    require(1 <= depth <= len(data.shape), f"indices must name 1 to {len(data.shape)} dimensions, but got {depth}")
    leading, after = data.shape[:depth], data.shape[depth:]
    count = math.prod(positions.shape[:-1])

    def emit(emitter: Emitter) -> ir.Value:
        at = joined(emitter, emitter.reshape(emitter.value(positions), (count, depth)), leading)
        table = emitter.reshape(emitter.value(data), (math.prod(leading), *after))
        return emitter.reshape(_rows(emitter, table, at), (*positions.shape[:-1], *after))

    return emit


def joined(emitter: Emitter, positions: ir.Value, extents: Shape) -> ir.Value:
    """Indices [N, K] of dimensions with these extents as indices [N] of all of them together."""
    count, total, s = shape_of(positions.type)[0], None, Arithmetic(emitter)
    for axis in range(len(extents)):
        column = take_slices(emitter, positions, (Slice(0, 1, count), Slice(axis, 1, 1)))
        scaled = s.op("arith.muli", emitter.reshape(column, (count,)), math.prod(extents[axis + 1 :]))
        total = scaled if total is None else s.op("arith.addi", total, scaled)
    assert total is not None
    return total


@imports("REVERSE_SEQUENCE")
def _reverse_sequence(operator: Operator) -> Emission:
    """The first elements of each sequence, as many as its length, in reverse order."""
    axes = read_options(operator, tflite.ReverseSequenceOptions, lambda o: (o.SeqDim(), o.BatchDim()))
    data, lengths = operands(operator, 2)
    same_content(data, operator.outputs[0])
    check_index_type(lengths, "lengths")
    rank = len(data.shape)
    time, batch = (axis_of([axis], rank) for axis in axes)
    require(time != batch, f"sequences and batch must be two dimensions, but got {time} and {batch}")
    sizes = data.shape[batch], data.shape[time]
    require(lengths.shape == sizes[:1], f"lengths must be {sizes[0]}, but got {list(lengths.shape)}")
    order = (batch, time, *(axis for axis in range(rank) if axis not in (batch, time)))

    def emit(emitter: Emitter) -> ir.Value:
        moved = _transposed(emitter, emitter.value(data), order)
        inner = shape_of(moved.type)[2:]
        at = _reversed_positions(emitter, emitter.value(lengths), *sizes)
        table = emitter.reshape(moved, (sizes[0] * sizes[1], *inner))
        rows = emitter.reshape(_rows(emitter, table, at), (*sizes, *inner))
        return _transposed(emitter, rows, [order.index(axis) for axis in range(rank)])

    return emit


def _reversed_positions(emitter: Emitter, lengths: ir.Value, batch: int, steps: int) -> ir.Value:
    """[B * T]: ``length - 1 - t`` of the same sequence where t is below its length, else t."""
    s, element = Arithmetic(emitter), element_of(lengths.type)
    dtype = np.int32 if element == "i32" else np.int64
    spread = emitter.concatenate([emitter.reshape(lengths, (batch, 1))] * steps, 1)
    time = emitter.constant(np.ascontiguousarray(np.broadcast_to(np.arange(steps, dtype=dtype), (batch, steps))))
    behind = s.op("arith.subi", s.op("arith.addi", spread, -1), time)
    at = s.select(s.compare("lt", time, spread), behind, time)
    rows = np.broadcast_to(np.arange(batch).reshape(batch, 1) * steps, (batch, steps))
    return emitter.reshape(_sum(emitter, at, rows), (batch * steps,))


def _transposed(emitter: Emitter, value: ir.Value, order: Sequence[int]) -> ir.Value:
    if list(order) == sorted(order):
        return value
    return emitter.build(TransposeOp, value, element=element_of(value.type), permutation=tuple(order))


@imports("DYNAMIC_UPDATE_SLICE")
def _dynamic_update_slice(operator: Operator) -> Emission:
    """The update over the data from an index on, which is cut so that all of it fits."""
    data, update, starts = operands(operator, 3)
    for tensor in (data, update):
        same_content(tensor, operator.outputs[0])
    check_index_type(starts, "start indices")
    rank = len(data.shape)
    fits = len(update.shape) == rank and all(u <= n for u, n in zip(update.shape, data.shape, strict=False))
    require(fits and starts.shape == (rank,), "update must fit into the data and have an index for each dimension")
    cut = [axis for axis in range(rank) if update.shape[axis] < data.shape[axis]]
    require(len(cut) <= 1, f"update must be smaller in one dimension, but is in {len(cut)}")
    if not cut:
        return lambda emitter: emitter.value(update)
    axis = cut[0]
    order = (axis, *(other for other in range(rank) if other != axis))
    extent, count = data.shape[axis], update.shape[axis]

    def emit(emitter: Emitter) -> ir.Value:
        s, where = Arithmetic(emitter), take_slices(emitter, emitter.value(starts), (Slice(axis, 1, 1),))
        first = s.op("arith.minsi", s.op("arith.maxsi", where, 0), extent - count)
        rows = emitter.concatenate([first] * count, 0) if count > 1 else first
        parts = [_transposed(emitter, emitter.value(tensor), order) for tensor in (data, update)]
        at = _sum(emitter, rows, np.arange(count))
        written = emitter.build(DynamicScatterOp, parts[0], at, parts[1], element=data.element)
        return _transposed(emitter, written, [order.index(axis) for axis in range(rank)])

    return emit
