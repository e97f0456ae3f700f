"""Elements at other positions, known or given at run time: gathers, scatters, Pad, Tile, OneHot, Col2Im."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from qdialect.arithmetic.choices import ScatterReduction
from qdialect.dialect.type_constraints import MAX_ELEMENTS
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, axes_in, axis_in, require
from qdialect.frontends.building.slices import Slice, border
from qdialect.frontends.onnx.operators.data_movement import integers_of
from qdialect.frontends.onnx.operators.registry import Call, Quantized, imports, value_of
from qdialect.frontends.onnx.operators.window import declared_window
from qdialect.frontends.planning import elementwise, movement
from qdialect.frontends.planning.elementwise import Arithmetic, binary, constant_of, tensor_of, value_of_tensor
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.indexing import INDICES, elements_at, offset_of, scattered, strides_of, sum_of
from qdialect.frontends.planning.tensors import Constant, Tensor, known, known_array
from qdialect.ir._mlir import ir

# Elements at positions that other tensors give when the network runs: GatherElements, GatherND and the scatters.


def indices_of(call: Call, index: int) -> Value:
    """Input `index` as indices."""
    value = value_of(call, index)
    require(value.element in INDICES, f"indices must be i32 or i64, but got {value.element}")
    return value


def elements_along(call: Call, source: Tensor, indices: Value, axis: int) -> Tensor:
    """GatherElements of a tensor: element [.., i, ..] is the source's element [.., indices[.., i, ..], ..]."""
    flat = movement.move(call.plan, call.name, source, movement.Reshaping((math.prod(source.shape),)))
    return movement.gathered(call.plan, call.name, flat, _elements_at(call, source, indices, axis), 0)


def _elements_at(call: Call, source: Tensor, indices: Value, axis: int) -> Value:
    return value_of_tensor(call, elements_at(call, source.shape, indices, axis))


def _checked_axis(call: Call, source: Tensor, indices: Value) -> int:
    axis = axis_in(call.attribute("axis", 0), len(source.shape))
    pairs = list(zip(source.shape, indices.shape, strict=False))
    fits = len(source.shape) == len(indices.shape) and all(
        own >= found for i, (own, found) in enumerate(pairs) if i != axis
    )
    require(fits, f"indices must lie in a tensor of shape {list(source.shape)}, but have {list(indices.shape)}")
    return axis


@imports("GatherElements")
def _gather_elements(call: Call) -> Tensor:
    source, indices = call.tensor(0), indices_of(call, 1)
    return elements_along(call, source, indices, _checked_axis(call, source, indices))


@dataclass(frozen=True)
class _Tuples:
    """Indices of several dimensions: where the rows lie that they name, the rows' shape and how many there are."""

    rows: Value
    row: Shape
    count: int


def _tuples(call: Call, shape: Shape, indices: Value, batch: int) -> _Tuples:
    """Indices into `shape`, whose last dimension has one entry for each dimension from `batch` on."""
    depth = indices.shape[-1] if indices.shape else 0
    fits = batch >= 0 and batch < len(indices.shape) and shape[:batch] == indices.shape[:batch]
    require(fits, f"batch_dims must be dimensions that data and indices share, but got {batch}")
    holds = 1 <= depth <= len(shape) - batch
    require(holds, f"indices must name 1 to {len(shape) - batch} dimensions, but name {depth}")
    indexed, strides = shape[: batch + depth], strides_of(shape[: batch + depth])
    offsets: list[Tensor] = [
        offset_of(call, _component(call, indices, i), indexed[batch + i], strides[batch + i]) for i in range(depth)
    ]
    outer = indices.shape[:-1]
    for axis in range(batch):
        along = np.arange(shape[axis], dtype=np.int64) * strides[axis]
        offsets.append(known(call.name, along.reshape(-1, *[1] * (len(outer) - axis - 1))))
    return _Tuples(value_of_tensor(call, sum_of(call, offsets)), shape[batch + depth :], math.prod(indexed))


def _component(call: Call, indices: Value, component: int) -> Value:
    """One entry of each index."""
    outer = indices.shape[:-1]
    slices = (*(Slice(0, 1, extent) for extent in outer), Slice(component, 1, 1))
    part = call.moved(indices, movement.Slicing.of(slices))
    return call.shaped(part, outer)


@imports("GatherND")
def _gather_nd(call: Call) -> Tensor:
    source, indices = call.tensor(0), indices_of(call, 1)
    found = _tuples(call, source.shape, indices, call.attribute("batch_dims", 0))
    rows = movement.move(call.plan, call.name, source, movement.Reshaping((found.count, *found.row)))
    return movement.gathered(call.plan, call.name, rows, found.rows, 0)


@imports("ScatterND")
def _scatter_nd(call: Call) -> Tensor:
    """Rows are written in the order of the indices."""
    shape, indices = call.tensor(0).shape, indices_of(call, 1)
    found = _tuples(call, shape, indices, 0)
    wanted = (*indices.shape[:-1], *found.row)
    require(call.tensor(2).shape == wanted, f"updates must have the shape {list(wanted)}")
    return _scattered(call, found.rows, found.row, found.count)


@imports("ScatterElements", "Scatter")
def _scatter_elements(call: Call) -> Tensor:
    source, indices = call.tensor(0), indices_of(call, 1)
    axis = _checked_axis(call, source, indices)
    require(call.tensor(2).shape == indices.shape, f"updates must have the shape {list(indices.shape)}")
    return _scattered(call, _elements_at(call, source, indices, axis), (), math.prod(source.shape))


_REDUCTIONS = {
    "none": ScatterReduction.NONE,
    "add": ScatterReduction.ADD,
    "mul": ScatterReduction.MUL,
    "min": ScatterReduction.LESS,
    "max": ScatterReduction.GREATER,
}


def _scattered(call: Call, rows: Value, row: Shape, count: int) -> Tensor:
    """Input 0, as `count` rows, with input 2 at `rows`.

    Narrow integers are reduced as i32, of which the low bits are theirs; a truth value is whether that is not 0.
    """
    data, updates = value_of(call, 0), value_of(call, 2)
    element = elementwise.common_element([data, updates], ("i1", "i8", "ui8", "i16", "ui16", "i32", "i64", "f32"))
    name = call.attribute("reduction", "none")
    require(name in _REDUCTIONS, f"reduction must be {' or '.join(_REDUCTIONS)}, but got {name}")
    if name == "none" or element in ("i16", "i32", "i64", "f32"):
        return tensor_of(scattered(call, data, rows, updates, (count, *row), _REDUCTIONS[name]))
    require(element != "i1" or name in ("add", "mul"), "reduction of truth values must be none, add or mul")
    wide = [elementwise.unary(call, one, "i32", partial(_as, element, "i32")) for one in (data, updates)]
    total = scattered(call, wide[0], rows, wide[1], (count, *row), _REDUCTIONS[name])
    return tensor_of(elementwise.unary(call, total, element, partial(_as, "i32", element)))


def _as(found: str, element: str, s: Arithmetic, x: ir.Value) -> ir.Value:
    return elementwise.converted(s, x, found, element)


# Gather, Tile, Pad, DepthToSpace and SpaceToDepth: elements at other positions, some of them more than once.

_BORDERS = ("reflect", "edge", "wrap")


def _chain(call: Call, *movements: movement.Movement) -> Tensor:
    """Input 0 of a node, moved by several movements."""
    tensor = call.tensor(0)
    for way in movements:
        if isinstance(way, movement.Reshaping) and way.shape == tensor.shape:
            continue
        tensor = movement.move(call.plan, call.name, tensor, way)
    return tensor


@imports("Gather")
def _gather(call: Call) -> Tensor:
    """The dimension `axis` makes way for those of the indices."""
    shape = call.tensor(0).shape
    axis = axis_in(call.attribute("axis", 0), len(shape))
    if not isinstance(call.tensor(1), Constant):
        return movement.gathered(call.plan, call.name, call.tensor(0), indices_of(call, 1), axis)
    indices, extent = call.constant(1), shape[axis]
    require(indices.dtype.kind == "i" and indices.size >= 1, "indices must be integers, at least one")
    holds = bool((indices >= -extent).all() and (indices < extent).all())
    require(holds, f"indices must be in [-{extent}, {extent})")
    call.plan.budget.spend_indices(indices.size)
    flat = tuple(int(index) % extent for index in indices.ravel())
    reshaping = movement.Reshaping((*shape[:axis], *indices.shape, *shape[axis + 1 :]))
    return _chain(call, movement.Gathering.of(shape, axis, flat), reshaping)


@imports("Tile")
def _tile(call: Call) -> Tensor:
    call.count(2)
    shape, repeats = call.tensor(0).shape, integers_of(call, 1, "repeats") or ()
    holds = len(repeats) == len(shape) and all(count >= 1 for count in repeats)
    require(holds, f"repeats must be {len(shape)} integers of at least 1, but got {list(repeats)}")
    pairs = list(zip(repeats, shape, strict=True))
    split = tuple(entry for _, extent in pairs for entry in (1, extent))
    repeated = movement.Broadcasting(tuple(entry for pair in pairs for entry in pair))
    return _chain(
        call, movement.Reshaping(split), repeated, movement.Reshaping(tuple(count * extent for count, extent in pairs))
    )


def _along(call: Call, indices_of_axes: list[Sequence[int]]) -> Tensor:
    """Input 0 of a node with the elements at `indices_of_axes` along each dimension."""
    shape = call.tensor(0).shape
    movements: list[movement.Movement] = []
    for axis, (extent, indices) in enumerate(zip(shape, indices_of_axes, strict=True)):
        gathering = movement.Gathering.of(shape, axis, indices)
        shape = gathering.shape
        if indices != range(extent):
            movements.append(gathering)
    return _chain(call, *movements)


@imports("Pad")
def _pad(call: Call) -> Tensor:
    """Amounts and the number to fill with are attributes in old operator sets and constant inputs in later ones.

    A negative amount cuts; a border that is not constant repeats elements.
    """
    mode: str = call.attribute("mode", "constant")
    modes = ("constant", *_BORDERS)
    require(mode in modes, f"mode must be {' or '.join(modes)}, but got {mode}")
    shape, low, high = call.tensor(0).shape, *_amounts(call)
    if mode != "constant":
        return _along(call, [_border(call, *entry, mode) for entry in zip(shape, low, high, strict=True)])
    sides = list(zip(shape, low, high, strict=True))
    slices = tuple(Slice(max(-before, 0), 1, n + min(before, 0) + min(after, 0)) for n, before, after in sides)
    require(all(one.count >= 1 for one in slices), f"pads must not cut away all of {list(shape)}")
    low, high = (tuple(max(amount, 0) for amount in amounts) for amounts in (low, high))
    kept = tuple(one.count for one in slices)
    grown = tuple(map(sum, zip(kept, low, high, strict=True)))
    movements = [movement.Slicing.of(slices)] if kept != shape else []
    return _chain(call, *movements, movement.Padding(grown, low, high, _fill_of(call)))


def _amounts(call: Call) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank = len(call.tensor(0).shape)
    given = integers_of(call, 1, "pads")
    axes = axes_in(integers_of(call, 3, "axes") or range(rank), rank)
    count = len(axes)
    if given is None or len(given) != 2 * count:
        raise UnsupportedError(f"pads must be {2 * count} integers, but got {given}")
    low, high = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        low[axis], high[axis] = given[position], given[count + position]
    return tuple(low), tuple(high)


def _border(call: Call, extent: int, low: int, high: int, mode: str) -> Sequence[int]:
    """Where each element of a padded dimension comes from."""
    require(min(low, high) >= 0, f"pads must be at least 0 in mode {mode}, but got {min(low, high)}")
    return border(extent, low, high, mode, "pads", call.plan.budget)


def _fill_of(call: Call) -> float:
    tensor = call.optional(2)
    if isinstance(tensor, Quantized) and tensor.values.data is not None and tensor.values.data.size == 1:
        return float(np.asarray(tensor.f32_values()).ravel()[0])
    array = known_array(tensor)
    if array is not None and array.size == 1 and array.dtype.kind in "iu":
        return int(array.item())
    if tensor is not None:
        return call.number(2)
    return call.attribute("value", 0.0)


@imports("DepthToSpace")
def _depth_to_space(call: Call) -> Tensor:
    """Channels are numbered [row, column, channel] in mode DCR, [channel, row, column] in mode CRD."""
    size, mode, (batch, channels, height, width) = _image_of_blocks(call)
    fits = size >= 1 and channels % (size * size) == 0
    require(fits, f"channels must be a multiple of the square of blocksize {size}, but got {channels}")
    depth = channels // (size * size)
    split = (batch, size, size, depth, height, width) if mode == "DCR" else (batch, depth, size, size, height, width)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    return _blocks(call, split, order, (batch, depth, height * size, width * size))


@imports("SpaceToDepth")
def _space_to_depth(call: Call) -> Tensor:
    """Channels are numbered [row, column, channel] in mode DCR, [channel, row, column] in mode CRD."""
    size, mode, (batch, channels, height, width) = _image_of_blocks(call)
    fits = size >= 1 and height % size == width % size == 0
    require(fits, f"height and width must be multiples of blocksize {size}, but got {height} and {width}")
    rows, columns = height // size, width // size
    split = (batch, channels, rows, size, columns, size)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return _blocks(call, split, order, (batch, channels * size * size, rows, columns))


def _image_of_blocks(call: Call) -> tuple[int, str, Shape]:
    """The size of blocks, how channels are numbered, and the shape of the data."""
    mode, shape = call.attribute("mode", "DCR"), call.tensor(0).shape
    require(mode in ("DCR", "CRD"), f"mode must be DCR or CRD, but got {mode}")
    require(len(shape) == 4, f"input must have 4 dimensions, but got {len(shape)}")
    return call.attribute("blocksize", 0), mode, shape


def _blocks(call: Call, split: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """Dimensions taken apart, reordered and put together again."""
    reordered = movement.Transposition.of(split, order)
    return _chain(call, movement.Reshaping(split), reordered, movement.Reshaping(shape))


# Trilu and OneHot: elements selected by the numbers of their rows and columns.


@imports("Trilu")
def _trilu(call: Call) -> Tensor:
    """The upper or lower triangle of each matrix, from the k-th diagonal on; zeros elsewhere."""
    value, is_upper = value_of(call, 0), call.flag("upper", 1)
    require(len(value.shape) >= 2, f"input must have at least 2 dimensions, but got {len(value.shape)}")
    diagonals = call.integers(1) if call.optional(1) is not None else (0,)
    require(len(diagonals) == 1, f"k must have 1 entry, but got {len(diagonals)}")
    rows, columns = value.shape[-2:]
    diagonal = min(max(diagonals[0], -rows), columns)
    triangle = np.tri(rows, columns, k=diagonal - 1 if is_upper else diagonal, dtype=np.bool_)
    mask = constant_of(call, ~triangle if is_upper else triangle)
    return tensor_of(binary(call, [mask, value], value.element, lambda s, holds, x: s.select(holds, x, 0)))


@imports("OneHot")
def _one_hot(call: Call) -> Tensor:
    """An index outside has no element of its own."""
    indices, number, pair = indices_of(call, 0), call.number(1), call.constant(2)
    require(1 <= number <= MAX_ELEMENTS, f"depth must be in [1, {MAX_ELEMENTS}], but got {number}")
    depth = int(number)
    require(pair.shape == (2,), f"values must have the shape [2], but got {list(pair.shape)}")
    rank = len(indices.shape) + 1
    axis = axis_in(call.attribute("axis", -1), rank)
    shape = (*indices.shape[:axis], 1, *indices.shape[axis:])
    grown = call.shaped(indices, shape)
    call.plan.budget.spend_indices(depth)
    along = np.arange(depth, dtype=np.int64).reshape(-1, *[1] * (rank - axis - 1))
    off, on = (known(call.name, entry.reshape(())) for entry in pair)

    def build(s: Arithmetic, index: ir.Value, position: ir.Value, other: ir.Value, own: ir.Value) -> ir.Value:
        wide = s.resize(index, "i64")
        from_end = s.select(s.compare("lt", wide, 0), s.op("arith.addi", wide, depth), wide)
        return s.select(s.compare("eq", from_end, position), own, other)

    return tensor_of(elementwise.elementwise(call, [grown, constant_of(call, along), off, on], on.element, build))


# ReverseSequence: the first elements of each sequence of a batch in reverse order; its length is their number.


@imports("ReverseSequence")
def _reverse_sequence(call: Call) -> Tensor:
    """One of the first two dimensions is the batch, the other one time; lengths may be known at run time alone."""
    source, lengths = call.tensor(0), indices_of(call, 1)
    batch, time = call.attribute("batch_axis", 1), call.attribute("time_axis", 0)
    require(sorted((batch, time)) == [0, 1], f"batch_axis and time_axis must be 0 and 1, but got {batch} and {time}")
    rank, shape = len(source.shape), source.shape
    require(rank >= 2, f"input must have at least 2 dimensions, but got {rank}")
    require(lengths.shape == (shape[batch],), f"lengths must be {shape[batch]} entries, but got {list(lengths.shape)}")
    steps = np.arange(shape[time], dtype=np.int64).reshape([-1 if axis == time else 1 for axis in range(rank)])
    spread = movement.Reshaping(tuple(extent if axis == batch else 1 for axis, extent in enumerate(shape)))

    def build(s: Arithmetic, step: ir.Value, count: ir.Value) -> ir.Value:
        length = s.resize(count, "i64")
        turned = s.op("arith.subi", s.op("arith.subi", length, step), 1)
        return s.select(s.compare("lt", step, length), turned, step)

    by_entry = call.moved(lengths, spread)
    indices = binary(call, [constant_of(call, steps), by_entry], "i64", build)
    return elements_along(call, source, call.moved(indices, movement.Broadcasting(shape)), time)


# Col2Im: elements of windows added to where they lie in an image.


@imports("Col2Im")
def _col2im(call: Call) -> Tensor:
    """Of [N, C * taps, windows] the image [N, C, ...] in which each element is the sum of what windows have for it."""
    value, size, kernel = value_of(call, 0), call.integers(1), call.integers(2)
    require(value.element == "f32", f"input must be f32, but got {value.element}")
    require(len(value.shape) == 3, f"input must have 3 dimensions, but got {len(value.shape)}")
    window = declared_window(call, size, kernel)
    batch, rows, windows = value.shape
    taps = math.prod(kernel)
    fits = rows % taps == 0 and windows == math.prod(window.output) and min(size) >= 1
    require(fits, f"input must have rows of {taps} taps and {math.prod(window.output)} windows, but is {value.shape}")
    padded = tuple(map(sum, zip(size, window.before, window.after, strict=True)))
    call.plan.budget.spend_constant(value.shape, 8)
    images = batch * (rows // taps)
    at = _offsets(kernel, window.dilation, padded)[:, np.newaxis] + _offsets(window.output, window.strides, padded)
    indices = (np.arange(images) * math.prod(padded))[:, np.newaxis, np.newaxis] + at
    zeros = constant_of(call, np.zeros((images, *padded), np.float32))
    positions = constant_of(call, indices.astype(np.int64))
    updates = call.shaped(value, (images, taps, windows))
    count = (math.prod(zeros.shape),)
    image = scattered(call, zeros, positions, updates, count, ScatterReduction.ADD)
    kept = [Slice(0, 1, images), *(Slice(low, 1, extent) for low, extent in zip(window.before, size, strict=True))]
    cut = call.moved(image, movement.Slicing.of(kept))
    return tensor_of(call.shaped(cut, (batch, rows // taps, *size)))


def _offsets(counts: Shape, steps: Shape, size: Shape) -> Array:
    """Where elements, `steps` apart along each dimension, lie in an image of `size`, in row-major order."""
    grid = np.indices(counts).reshape(len(counts), -1)
    return np.asarray(np.ravel_multi_index(tuple(axis * step for axis, step in zip(grid, steps, strict=True)), size))
