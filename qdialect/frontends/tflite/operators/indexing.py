"""Plans elements at indices, which are known or found at run time: gathered, scattered and looked up."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic.block_weights import pack_weights
from qdialect.arithmetic.choices import ScatterReduction
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of, shape_of
from qdialect.frontends.building.checks import Array, Shape, require, required
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.building.slices import MAX_INDICES, Slice, border, check_indices, gather, take_slices
from qdialect.frontends.planning.block_weights import block_rows
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.movement import amounts_of
from qdialect.frontends.tflite.operators.registry import Building, Emission, Emitter, built, imports, imports_integers
from qdialect.ir._mlir import ir

# Every one is a gather of rows, or a scatter of rows, of a tensor whose leading dimensions are taken as one.  LiteRT
# fails at an index outside of its dimension; here it reads another element of the tensor.


def gather_at_run_time(data: Tensor, positions: Tensor, axis: int, batch_dims: int) -> Building:
    """GATHER: the dimensions of the indices after `batch_dims`, which both tensors share, replace `axis`."""
    shape, indices = data.shape, positions.shape
    checks.check_index_type(positions, "indices")
    shared = 0 <= batch_dims <= min(axis, len(indices)) and shape[:batch_dims] == indices[:batch_dims]
    shapes = f"{list(shape)} and {list(indices)}"
    require(shared, f"input and indices must share {batch_dims} leading dimensions before the axis, but got {shapes}")
    batch, extent = math.prod(shape[:batch_dims]), shape[axis]
    between, after = shape[batch_dims:axis], shape[axis + 1 :]
    result = (*shape[:axis], *indices[batch_dims:], *after)
    emitter = yield
    value, where = emitter.value(data), emitter.value(positions)
    if not batch_dims:
        return emitter.build(qnn.DynamicGatherOp, value, where, element=data.element, axis=axis)
    # A row of the whole for each index of each batch and of what lies between.
    middle, picked = math.prod(between), math.prod(indices[batch_dims:])
    rows = np.arange(batch * middle).reshape(batch, middle, 1) * extent
    flat = emitter.reshape(where, (batch, 1, picked))
    repeated = emitter.concatenate([flat] * middle, 1) if middle > 1 else flat
    at = _sum(emitter, repeated, np.broadcast_to(rows, (batch, middle, picked)))
    table = emitter.reshape(value, (batch * middle * extent, *after))
    return emitter.reshape(_rows_at(emitter, table, at), result)


def _sum(emitter: Emitter, indices: ir.Value, offsets: Array) -> ir.Value:
    dtype = np.int32 if element_of(indices.type) == "i32" else np.int64
    constant = emitter.constant(np.ascontiguousarray(offsets.astype(dtype)))
    return Arithmetic(emitter).op("arith.addi", indices, constant)


def _rows_at(emitter: Emitter, table: ir.Value, at: ir.Value) -> ir.Value:
    return emitter.build(qnn.DynamicGatherOp, table, at, element=element_of(table.type), axis=0)


@imports("GATHER_ND")
def _gather_nd(operator: Operator) -> Building:
    """The last dimension of the indices names an element of the leading dimensions of the data."""
    data, positions = checks.operands(operator, 2)
    checks.same_content(data, operator.outputs[0])
    checks.check_index_type(positions, "indices")
    require(len(positions.shape) >= 1, "indices must have at least 1 dimension")
    depth = positions.shape[-1]
    require(1 <= depth <= len(data.shape), f"indices must name 1 to {len(data.shape)} dimensions, but got {depth}")
    leading, after = data.shape[:depth], data.shape[depth:]
    count = math.prod(positions.shape[:-1])
    emitter = yield
    at = joined(emitter, emitter.reshape(emitter.value(positions), (count, depth)), leading)
    table = emitter.reshape(emitter.value(data), (math.prod(leading), *after))
    return emitter.reshape(_rows_at(emitter, table, at), (*positions.shape[:-1], *after))


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
def _reverse_sequence(operator: Operator) -> Building:
    """The first elements of each sequence, as many as its length, in reverse order."""
    axes = operator.options("SeqDim", "BatchDim")
    data, lengths = checks.operands(operator, 2)
    checks.same_content(data, operator.outputs[0])
    checks.check_index_type(lengths, "lengths")
    rank = len(data.shape)
    time, batch = (checks.axis_of([axis], rank) for axis in axes)
    require(time != batch, f"sequences and batch must be two dimensions, but got {time} and {batch}")
    sizes = data.shape[batch], data.shape[time]
    require(lengths.shape == sizes[:1], f"lengths must be {sizes[0]}, but got {list(lengths.shape)}")
    order = (batch, time, *(axis for axis in range(rank) if axis not in (batch, time)))
    emitter = yield
    moved = _transposed(emitter, emitter.value(data), order)
    inner = shape_of(moved.type)[2:]
    at = _reversed_positions(emitter, emitter.value(lengths), *sizes)
    table = emitter.reshape(moved, (sizes[0] * sizes[1], *inner))
    rows = emitter.reshape(_rows_at(emitter, table, at), (*sizes, *inner))
    return _transposed(emitter, rows, [order.index(axis) for axis in range(rank)])


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
    return value if list(order) == sorted(order) else emitter.transpose(value, order)


@imports("DYNAMIC_UPDATE_SLICE")
def _dynamic_update_slice(operator: Operator) -> Building:
    """The update over the data from an index on, which is cut so that all of it fits."""
    data, update, starts = checks.operands(operator, 3)
    for tensor in (data, update):
        checks.same_content(tensor, operator.outputs[0])
    checks.check_index_type(starts, "start indices")
    rank = len(data.shape)
    fits = len(update.shape) == rank and all(u <= n for u, n in zip(update.shape, data.shape, strict=False))
    require(fits and starts.shape == (rank,), "update must fit into the data and have an index for each dimension")
    cut = [axis for axis in range(rank) if update.shape[axis] < data.shape[axis]]
    require(len(cut) <= 1, f"update must be smaller in one dimension, but is in {len(cut)}")
    emitter = yield
    if not cut:
        return emitter.value(update)
    axis = cut[0]
    order = (axis, *(other for other in range(rank) if other != axis))
    extent, count = data.shape[axis], update.shape[axis]
    s, where = Arithmetic(emitter), take_slices(emitter, emitter.value(starts), (Slice(axis, 1, 1),))
    first = s.op("arith.minsi", s.op("arith.maxsi", where, 0), extent - count)
    rows = emitter.concatenate([first] * count, 0) if count > 1 else first
    parts = [_transposed(emitter, emitter.value(tensor), order) for tensor in (data, update)]
    at = _sum(emitter, rows, np.arange(count))
    written = emitter.build(qnn.DynamicScatterOp, parts[0], at, parts[1], element=data.element)
    return _transposed(emitter, written, [order.index(axis) for axis in range(rank)])


# GATHER, MIRROR_PAD, TILE, REVERSE_V2, BROADCAST_TO, DEPTH_TO_SPACE and SPACE_TO_DEPTH: elements moved.

_MIRRORS = ("reflect", "symmetric")
# Both halves of a block change sides with what lies between them.
_BLOCK_ORDER = (0, 1, 3, 2, 4, 5)


@imports("GATHER")
def _gather(operator: Operator) -> Building:
    """The dimension `axis` makes way for those of the indices."""
    axis, dims = operator.options("Axis", "BatchDims")
    data, positions = checks.operands(operator, 2)
    checks.same_content(data, operator.outputs[0])
    dimension = checks.axis_of([axis], len(data.shape))
    if positions.data is None or dims:
        return (yield from gather_at_run_time(data, positions, dimension, dims))
    check_indices(math.prod(positions.shape), operator.budget)
    indices = checks.integers(positions, "indices", MAX_INDICES)
    extent = data.shape[dimension]
    holds = len(indices) >= 1 and all(0 <= index < extent for index in indices)
    require(holds, f"indices must be in [0, {extent}), at least one, but got {list(indices[:4])}")
    shape = (*data.shape[:dimension], *positions.shape, *data.shape[dimension + 1 :])
    emitter = yield
    return emitter.reshape(gather(emitter, emitter.value(data), dimension, indices), shape)


def _along(data: Tensor, positions: Sequence[Sequence[int]]) -> Building:
    """The elements at `positions` along each dimension."""
    emitter = yield
    value = emitter.value(data)
    for axis, indices in enumerate(positions):
        value = gather(emitter, value, axis, indices)
    return value


@imports("MIRROR_PAD")
def _mirror_pad(operator: Operator) -> Building:
    mode: int = operator.option("Mode")
    require(mode in range(len(_MIRRORS)), f"mode must be 0 or 1, but got {mode}")
    data, paddings = checks.operands(operator, 2)
    checks.same_content(data, operator.outputs[0])
    low, high = amounts_of(paddings, len(data.shape))
    require(min(*low, *high, 0) >= 0, f"paddings must be at least 0, but got {min(*low, *high, 0)}")
    sides = zip(data.shape, low, high, strict=True)
    return _along(data, [border(*side, _MIRRORS[mode], "paddings", operator.budget) for side in sides])


@imports("TILE")
def _tile(operator: Operator) -> Building:
    data, multiples = checks.operands(operator, 2)
    counts, rank = checks.integers(multiples, "multiples"), len(data.shape)
    holds = len(counts) == rank and min(counts, default=1) >= 1
    require(holds, f"multiples must be {rank} integers of at least 1, but got {list(counts)}")
    checks.same_content(data, operator.outputs[0])
    pairs = list(zip(counts, data.shape, strict=True))
    split = tuple(entry for _, extent in pairs for entry in (1, extent))
    repeated = tuple(entry for pair in pairs for entry in pair)
    emitter = yield
    parts = emitter.reshape(emitter.value(data), split)
    spread = emitter.build(qnn.BroadcastOp, parts, element=data.element, shape=repeated)
    return emitter.reshape(spread, tuple(count * extent for count, extent in pairs))


@imports("REVERSE_V2")
def _reverse(operator: Operator) -> Building:
    data, axes = checks.operands(operator, 2)
    # The kernel copies elements whatever they stand for: converters give both sides scales of their own.
    checks.same_type(operator, data)
    reversed_ones = {checks.axis_of([axis], len(data.shape)) for axis in checks.integers(axes, "axis")}
    for axis in reversed_ones:
        check_indices(data.shape[axis], operator.budget)
    ranges = [range(extent) for extent in data.shape]
    return _along(data, [one[::-1] if i in reversed_ones else one for i, one in enumerate(ranges)])


@imports("BROADCAST_TO")
def _broadcast_to(operator: Operator) -> Emission:
    data, extents = checks.operands(operator, 2)
    checks.same_content(data, operator.outputs[0])
    shape = checks.integers(extents, "shape")
    return built(qnn.BroadcastOp, data, element=data.element, shape=shape)


@imports("DEPTH_TO_SPACE")
def _depth_to_space(operator: Operator) -> Emission:
    """Channels are numbered [row, column, channel]."""
    size = operator.option("BlockSize")
    data, (batch, height, width, channels) = _image(operator)
    fits = size >= 1 and channels % (size * size) == 0
    require(fits, f"channels must be a multiple of the square of block size {size}, but got {channels}")
    depth = channels // (size * size)
    return _blocks(data, (batch, height, width, size, size, depth), (batch, height * size, width * size, depth))


@imports("SPACE_TO_DEPTH")
def _space_to_depth(operator: Operator) -> Emission:
    """Channels are numbered [row, column, channel]."""
    size = operator.option("BlockSize")
    data, (batch, height, width, channels) = _image(operator)
    fits = size >= 1 and height % size == width % size == 0
    require(fits, f"height and width must be multiples of block size {size}, but got {height} and {width}")
    rows, columns = height // size, width // size
    split = (batch, rows, size, columns, size, channels)
    return _blocks(data, split, (batch, rows, columns, size * size * channels))


def _image(operator: Operator) -> tuple[Tensor, Shape]:
    (data,) = checks.operands(operator, 1)
    checks.same_content(data, operator.outputs[0])
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    return data, data.shape


def _blocks(data: Tensor, split: Shape, shape: Shape) -> Emission:
    return lambda emitter: emitter.rearranged(emitter.value(data), split, _BLOCK_ORDER, shape)


# Sums of what is written to the same element: SCATTER_ND, SEGMENT_SUM and the reductions of unsorted segments.
#
# LiteRT fails at an index outside of its dimension; here it names another element of the result.

_SUMMED_TYPES = ("i16", "i32", "i64", "f32")
_SEGMENTS = {
    "SEGMENT_SUM": ScatterReduction.ADD,
    "UNSORTED_SEGMENT_MAX": ScatterReduction.MAX,
    "UNSORTED_SEGMENT_MIN": ScatterReduction.MIN,
    "UNSORTED_SEGMENT_PROD": ScatterReduction.MUL,
    "UNSORTED_SEGMENT_SUM": ScatterReduction.ADD,
}


def _check_reduced(operator: Operator, data: Tensor) -> None:
    checks.same_type(operator, data)
    require(data.element in _SUMMED_TYPES, f"input must be {', '.join(_SUMMED_TYPES)}, but got {data.element}")


def _filled(emitter: Emitter, reduction: ScatterReduction, element: str, shape: Shape) -> ir.Value:
    """The numbers that LiteRT's kernels begin with: the finite ends of floats too."""
    dtype = NUMPY_DTYPES[element]
    ends = np.finfo(np.float32) if element == "f32" else np.iinfo(dtype.name)
    numbers = {ScatterReduction.MAX: ends.min, ScatterReduction.MIN: ends.max, ScatterReduction.MUL: 1}
    return emitter.broadcast(emitter.constant(np.array(numbers.get(reduction, 0), dtype)), shape)


@imports_integers("SCATTER_ND")
def _scatter_nd(operator: Operator) -> Building:
    """Zeros to which each update adds at the elements that its index names."""
    positions, updates, wanted = checks.operands(operator, 3)
    output = operator.outputs[0]
    _check_reduced(operator, updates)
    checks.check_index_type(positions, "indices")
    require(len(positions.shape) >= 1, "indices must have at least 1 dimension")
    require(checks.integers(wanted, "shape") == output.shape, f"shape must be {list(output.shape)}")
    depth = positions.shape[-1]
    require(1 <= depth <= len(output.shape), f"indices must name 1 to {len(output.shape)} dimensions, but got {depth}")
    leading, row = output.shape[:depth], output.shape[depth:]
    listed = (*positions.shape[:-1], *row)
    require(updates.shape == listed, f"updates must have the shape {list(listed)}, but got {list(updates.shape)}")
    count = math.prod(positions.shape[:-1])
    emitter = yield
    at = joined(emitter, emitter.reshape(emitter.value(positions), (count, depth)), leading)
    table = _filled(emitter, ScatterReduction.ADD, output.element, (math.prod(leading), *row))
    added = emitter.reshape(emitter.value(updates), (count, *row))
    how = {"element": output.element, "reduction": ScatterReduction.ADD}
    return emitter.reshape(emitter.build(qnn.DynamicScatterOp, table, at, added, **how), output.shape)


@imports(*_SEGMENTS)
def _segments(operator: Operator) -> Building:
    """The rows of each segment, reduced in their order."""
    data, segments, *_ = checks.operands(operator, 2, 3)
    output = operator.outputs[0]
    _check_reduced(operator, data)
    checks.check_index_type(segments, "segment ids")
    rank = len(segments.shape)
    ranks = f"segment ids must be {list(data.shape[:1])}, but got {list(segments.shape)}"
    require(rank == 1 and segments.shape == data.shape[:1], ranks)
    rows, *row = output.shape or (0,)
    require(tuple(row) == data.shape[1:], f"output must be rows of {list(data.shape[1:])}, but got {row}")
    known = segments.data is None or bool(((segments.data >= 0) & (segments.data < rows)).all())
    require(known, f"segment ids must be in [0, {rows})")
    reduction = _SEGMENTS[operator.kind]
    emitter = yield
    table = _filled(emitter, reduction, output.element, output.shape)
    operands_ = table, emitter.value(segments), emitter.value(data)
    return emitter.build(qnn.DynamicScatterOp, *operands_, element=output.element, reduction=reduction)


# SPARSE_TO_DENSE: elements written to where their indices say, a default elsewhere.


@imports_integers("SPARSE_TO_DENSE")
def _sparse_to_dense(operator: Operator) -> Building:
    """LiteRT fails at an index outside of its dimension; here it names another element of the result."""
    positions, extents, values, default = checks.operands(operator, 4)
    output = operator.outputs[0]
    checks.check_index_type(positions, "indices")
    shape = checks.integers(extents, "output shape")
    require(shape == output.shape, f"output must be {list(shape)}, but got {list(output.shape)}")
    for tensor in (values, default):
        checks.same_content(tensor, output)
    require(math.prod(default.shape) == 1, f"default must have 1 element, but got {math.prod(default.shape)}")
    rows = (*positions.shape, 1, 1)[:2] if len(positions.shape) < 2 else positions.shape
    count, depth = rows
    require(len(positions.shape) <= 2 and depth == len(shape), f"indices must name {len(shape)} dimensions")
    given = math.prod(values.shape)
    require(given in (1, count), f"values must have 1 or {count} elements, but got {given}")
    emitter = yield
    at = joined(emitter, emitter.reshape(emitter.value(positions), (count, depth)), shape)
    table = emitter.broadcast(emitter.reshape(emitter.value(default), (1,)), (math.prod(shape),))
    written = emitter.broadcast(emitter.reshape(emitter.value(values), (given,)), (count,))
    return emitter.reshape(emitter.build(qnn.DynamicScatterOp, table, at, written, element=output.element), shape)


# EMBEDDING_LOOKUP: rows of a table by their indices, as they are or as the numbers that i8 rows stand for.


@imports("EMBEDDING_LOOKUP")
def _embedding_lookup(operator: Operator) -> Building:
    positions, table = checks.operands(operator, 2)
    output = operator.outputs[0]
    checks.check_index_type(positions, "indices")
    require(len(positions.shape) == 1, f"indices must have 1 dimension, but got {len(positions.shape)}")
    require(len(table.shape) >= 2, f"table must have at least 2 dimensions, but got {len(table.shape)}")
    is_hybrid = (table.element, output.element) == ("i8", "f32")
    if not is_hybrid:
        checks.same_content(table, output)
        emitter = yield
        return _rows_at(emitter, emitter.value(table), emitter.value(positions))
    checks.check_scales(table, "table")
    is_by_row = len(table.scales) > 1
    require(not is_by_row or table.axis == 0, f"scales of the table must lie along axis 0, but got {table.axis}")

    # The kernel takes no zero point into account.
    rows = checks.constant(table, "table").reshape(table.shape[0], -1)
    scales = np.broadcast_to(np.array(table.scales, np.float32)[:, np.newaxis], (len(rows), 1))
    packed = required(
        pack_weights(rows, scales, None, rows.shape[1]),
        f"table must have elements, but has the shape {list(table.shape)}",
    )
    emitter = yield
    return emitter.reshape(block_rows(emitter, emitter.value(positions), packed), output.shape)
