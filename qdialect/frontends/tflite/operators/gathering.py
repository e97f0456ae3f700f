"""GATHER, MIRROR_PAD, TILE, REVERSE_V2, BROADCAST_TO, DEPTH_TO_SPACE and SPACE_TO_DEPTH: elements moved."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tflite

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp, TransposeOp
from qdialect.frontends.common import require
from qdialect.frontends.slices import MAX_INDICES, border, check_indices, gather
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Shape, Tensor
from qdialect.frontends.tflite.operators.checks import integers, operands, same_content, same_type
from qdialect.frontends.tflite.operators.data_movement import amounts_of
from qdialect.frontends.tflite.operators.indexing import gather_at_run_time
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.operators.slicing import axis_of
from qdialect.frontends.tflite.reader import read_options

_MIRRORS = ("reflect", "symmetric")
# Both halves of a block change sides with what lies between them.
_BLOCK_ORDER = (0, 1, 3, 2, 4, 5)


@imports("GATHER")
def _gather(operator: Operator) -> Emission:
    """The dimension `axis` makes way for those of the indices."""
    axis, dims = read_options(operator, tflite.GatherOptions, lambda options: (options.Axis(), options.BatchDims()))
    data, positions = operands(operator, 2)
    same_content(data, operator.outputs[0])
    dimension = axis_of([axis], len(data.shape))
    if positions.data is None or dims:
        return gather_at_run_time(data, positions, dimension, dims)
    check_indices(math.prod(positions.shape), operator.budget)
    indices = integers(positions, "indices", MAX_INDICES)
    extent = data.shape[dimension]
    holds = len(indices) >= 1 and all(0 <= index < extent for index in indices)
    require(holds, f"indices must be in [0, {extent}), at least one, but got {list(indices[:4])}")
    shape = (*data.shape[:dimension], *positions.shape, *data.shape[dimension + 1 :])
    return lambda emitter: emitter.reshape(gather(emitter, emitter.value(data), dimension, indices), shape)


def _along(operator: Operator, data: Tensor, positions: Sequence[Sequence[int]]) -> Emission:
    """The elements at `positions` along each dimension."""

    def emit(emitter: Emitter) -> ir.Value:
        value = emitter.value(data)
        for axis, indices in enumerate(positions):
            value = gather(emitter, value, axis, indices)
        return value

    return emit


@imports("MIRROR_PAD")
def _mirror_pad(operator: Operator) -> Emission:
    mode = read_options(operator, tflite.MirrorPadOptions, lambda options: options.Mode())
    require(mode in range(len(_MIRRORS)), f"mode must be 0 or 1, but got {mode}")
    data, paddings = operands(operator, 2)
    same_content(data, operator.outputs[0])
    low, high = amounts_of(paddings, len(data.shape))
    require(min(*low, *high, 0) >= 0, f"paddings must be at least 0, but got {min(*low, *high, 0)}")
    sides = zip(data.shape, low, high, strict=True)
    return _along(operator, data, [border(*side, _MIRRORS[mode], "paddings", operator.budget) for side in sides])


@imports("TILE")
def _tile(operator: Operator) -> Emission:
    data, multiples = operands(operator, 2)
    counts, rank = integers(multiples, "multiples"), len(data.shape)
    holds = len(counts) == rank and min(counts, default=1) >= 1
    require(holds, f"multiples must be {rank} integers of at least 1, but got {list(counts)}")
    same_content(data, operator.outputs[0])
    pairs = list(zip(counts, data.shape, strict=True))
    split = tuple(entry for _, extent in pairs for entry in (1, extent))
    repeated = tuple(entry for pair in pairs for entry in pair)

    def emit(emitter: Emitter) -> ir.Value:
        parts = emitter.reshape(emitter.value(data), split)
        spread = emitter.build(BroadcastOp, parts, element=data.element, shape=repeated)
        return emitter.reshape(spread, tuple(count * extent for count, extent in pairs))

    return emit


@imports("REVERSE_V2")
def _reverse(operator: Operator) -> Emission:
    data, axes = operands(operator, 2)
    # The kernel copies elements whatever they stand for: converters give both sides scales of their own.
    same_type(operator, data)
    reversed_ones = {axis_of([axis], len(data.shape)) for axis in integers(axes, "axis")}
    for axis in reversed_ones:
        check_indices(data.shape[axis], operator.budget)
    ranges = [range(extent) for extent in data.shape]
    return _along(operator, data, [one[::-1] if i in reversed_ones else one for i, one in enumerate(ranges)])


@imports("BROADCAST_TO")
def _broadcast_to(operator: Operator) -> Emission:
    data, extents = operands(operator, 2)
    same_content(data, operator.outputs[0])
    shape = integers(extents, "shape")

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(BroadcastOp, emitter.value(data), element=data.element, shape=shape)

    return emit


@imports("DEPTH_TO_SPACE")
def _depth_to_space(operator: Operator) -> Emission:
    """Channels are numbered [row, column, channel]."""
    size = read_options(operator, tflite.DepthToSpaceOptions, lambda options: options.BlockSize())
    data, (batch, height, width, channels) = _image(operator)
    fits = size >= 1 and channels % (size * size) == 0
    require(fits, f"channels must be a multiple of the square of block size {size}, but got {channels}")
    depth = channels // (size * size)
    return _blocks(data, (batch, height, width, size, size, depth), (batch, height * size, width * size, depth))


@imports("SPACE_TO_DEPTH")
def _space_to_depth(operator: Operator) -> Emission:
    """Channels are numbered [row, column, channel]."""
    size = read_options(operator, tflite.SpaceToDepthOptions, lambda options: options.BlockSize())
    data, (batch, height, width, channels) = _image(operator)
    fits = size >= 1 and height % size == width % size == 0
    require(fits, f"height and width must be multiples of block size {size}, but got {height} and {width}")
    rows, columns = height // size, width // size
    split = (batch, rows, size, columns, size, channels)
    return _blocks(data, split, (batch, rows, columns, size * size * channels))


def _image(operator: Operator) -> tuple[Tensor, Shape]:
    (data,) = operands(operator, 1)
    same_content(data, operator.outputs[0])
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    return data, data.shape


def _blocks(data: Tensor, split: Shape, shape: Shape) -> Emission:
    """Dimensions taken apart, reordered and put together again."""

    def emit(emitter: Emitter) -> ir.Value:
        parts = emitter.reshape(emitter.value(data), split)
        moved = emitter.build(TransposeOp, parts, element=data.element, permutation=_BLOCK_ORDER)
        return emitter.reshape(moved, shape)

    return emit
