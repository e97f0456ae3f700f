"""Gather, Tile, Pad, DepthToSpace and SpaceToDepth: elements at other positions, some of them more than once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.frontends.common import UnsupportedError, require
from qdialect.frontends.onnx.operators.data_movement import integers_of, normalized_axes
from qdialect.frontends.onnx.operators.indexing import indices_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.movement import (
    Broadcasting,
    Gathering,
    Movement,
    Padding,
    Reshaping,
    Slicing,
    Transposition,
    gathered,
    move,
)
from qdialect.frontends.planning.tensors import Constant, Tensor
from qdialect.frontends.slices import Slice, border

_BORDERS = ("reflect", "edge", "wrap")


def _chain(call: Call, *movements: Movement) -> Tensor:
    """Input 0 of a node, moved by several movements."""
    tensor = call.tensor(0)
    for movement in movements:
        if isinstance(movement, Reshaping) and movement.shape == tensor.shape:
            continue
        tensor = move(call.plan, call.name, tensor, movement)
    return tensor


@imports("Gather")
def _gather(call: Call) -> Tensor:
    """The dimension `axis` makes way for those of the indices."""
    call.count(2)
    shape = call.tensor(0).shape
    (axis,) = normalized_axes([call.attribute("axis", 0)], len(shape))
    if not isinstance(call.tensor(1), Constant):
        return gathered(call.plan, call.name, call.tensor(0), indices_of(call, 1), axis)
    indices, extent = call.constant(1), shape[axis]
    require(indices.dtype.kind == "i" and indices.size >= 1, "indices must be integers, at least one")
    holds = bool((indices >= -extent).all() and (indices < extent).all())
    require(holds, f"indices must be in [-{extent}, {extent})")
    call.plan.budget.spend_indices(indices.size)
    flat = tuple(int(index) % extent for index in indices.ravel())
    reshaping = Reshaping((*shape[:axis], *indices.shape, *shape[axis + 1 :]))
    return _chain(call, Gathering.of(shape, axis, flat), reshaping)


@imports("Tile")
def _tile(call: Call) -> Tensor:
    call.count(2)
    shape, repeats = call.tensor(0).shape, integers_of(call, 1, "repeats") or ()
    holds = len(repeats) == len(shape) and all(count >= 1 for count in repeats)
    require(holds, f"repeats must be {len(shape)} integers of at least 1, but got {list(repeats)}")
    pairs = list(zip(repeats, shape, strict=True))
    split = tuple(entry for _, extent in pairs for entry in (1, extent))
    repeated = Broadcasting(tuple(entry for pair in pairs for entry in pair))
    return _chain(call, Reshaping(split), repeated, Reshaping(tuple(count * extent for count, extent in pairs)))


def _along(call: Call, indices_of_axes: list[Sequence[int]]) -> Tensor:
    """Input 0 of a node with the elements at `indices_of_axes` along each dimension."""
    shape = call.tensor(0).shape
    movements: list[Movement] = []
    for axis, (extent, indices) in enumerate(zip(shape, indices_of_axes, strict=True)):
        gathering = Gathering.of(shape, axis, indices)
        shape = gathering.shape
        if indices != range(extent):
            movements.append(gathering)
    return _chain(call, *movements)


@imports("Pad")
def _pad(call: Call) -> Tensor:
    """Amounts and the number to fill with are attributes in old operator sets and constant inputs in later ones.

    A negative amount cuts; a border that is not constant repeats elements.
    """
    call.count(1, 4)
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
    movements = [Slicing.of(slices)] if kept != shape else []
    return _chain(call, *movements, Padding(grown, low, high, _fill_of(call)))


def _amounts(call: Call) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank = len(call.tensor(0).shape)
    given = integers_of(call, 1, "pads")
    axes = normalized_axes(integers_of(call, 3, "axes") or range(rank), rank)
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
    if tensor is not None:
        return call.number(2)
    return call.attribute("value", 0.0)


@imports("DepthToSpace")
def _depth_to_space(call: Call) -> Tensor:
    """Channels are numbered [row, column, channel] in mode DCR, [channel, row, column] in mode CRD."""
    call.count(1)
    size, mode, shape = call.attribute("blocksize", 0), _mode(call), call.tensor(0).shape
    require(len(shape) == 4, f"input must have 4 dimensions, but got {len(shape)}")
    batch, channels, height, width = shape
    fits = size >= 1 and channels % (size * size) == 0
    require(fits, f"channels must be a multiple of the square of blocksize {size}, but got {channels}")
    depth = channels // (size * size)
    split = (batch, size, size, depth, height, width) if mode == "DCR" else (batch, depth, size, size, height, width)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    return _blocks(call, split, order, (batch, depth, height * size, width * size))


@imports("SpaceToDepth")
def _space_to_depth(call: Call) -> Tensor:
    """Channels are numbered [row, column, channel] in mode DCR, [channel, row, column] in mode CRD."""
    call.count(1)
    size, mode, shape = call.attribute("blocksize", 0), _mode(call), call.tensor(0).shape
    require(len(shape) == 4, f"input must have 4 dimensions, but got {len(shape)}")
    batch, channels, height, width = shape
    fits = size >= 1 and height % size == width % size == 0
    require(fits, f"height and width must be multiples of blocksize {size}, but got {height} and {width}")
    rows, columns = height // size, width // size
    split = (batch, channels, rows, size, columns, size)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return _blocks(call, split, order, (batch, channels * size * size, rows, columns))


def _mode(call: Call) -> str:
    mode: str = call.attribute("mode", "DCR")
    require(mode in ("DCR", "CRD"), f"mode must be DCR or CRD, but got {mode}")
    return mode


def _blocks(call: Call, split: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """Dimensions taken apart, reordered and put together again."""
    reordered = Transposition.of(split, order)
    return _chain(call, Reshaping(split), reordered, Reshaping(shape))
