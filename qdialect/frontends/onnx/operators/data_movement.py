"""Transpose, Reshape, Flatten, Squeeze, Unsqueeze, Expand, Identity and Dropout: numbers stay what they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.movement import Broadcasting, Movement, Reshaping, Transposition, move
from qdialect.frontends.planning.tensors import Constant, Tensor


def moved(call: Call, movement: Movement) -> Tensor:
    """Input 0 of a node, moved."""
    return move(call.plan, call.name, call.tensor(0), movement)


def _reshaped(call: Call, shape: Sequence[int]) -> Tensor:
    found = call.tensor(0).shape
    holds = math.prod(shape) == math.prod(found)
    require(holds, f"shape must have {math.prod(found)} elements, but got {list(shape)}")
    return moved(call, Reshaping(tuple(shape)))


def integers_of(call: Call, index: int, name: str) -> tuple[int, ...] | None:
    """A list of integers that is a constant input in later operator sets and an attribute in old ones."""
    if call.optional(index) is not None:
        return call.integers(index)
    found = call.node.attributes.get(name)
    return None if found is None else tuple(call.attribute(name, [0]))


@imports("Transpose")
def _transpose(call: Call) -> Tensor:
    call.count(1)
    shape = call.tensor(0).shape
    order: tuple[int, ...] = tuple(call.attribute("perm", list(range(len(shape)))[::-1]))
    holds = sorted(order) == list(range(len(shape)))
    require(holds, f"perm must order {len(shape)} dimensions, but got {list(order)}")
    return moved(call, Transposition.of(shape, order))


@imports("Reshape")
def _reshape(call: Call) -> Tensor:
    """A zero keeps the extent, -1 stands for whatever is left."""
    call.count(1, 2)
    wanted = integers_of(call, 1, "shape")
    require(wanted is not None, "shape must be given")
    assert wanted is not None
    source = call.tensor(0).shape
    keeps = not call.flag("allowzero", 0)
    kept = [source[i] if extent == 0 and keeps and i < len(source) else extent for i, extent in enumerate(wanted)]
    holds = kept.count(-1) <= 1 and min(kept, default=1) >= -1
    require(holds, f"shape must have at most one unknown extent, but got {list(wanted)}")
    known_part = math.prod(extent for extent in kept if extent != -1)
    require(-1 not in kept or known_part >= 1, f"shape must not be empty, but got {list(wanted)}")
    return _reshaped(call, [math.prod(source) // known_part if extent == -1 else extent for extent in kept])


@imports("Flatten")
def _flatten(call: Call) -> Tensor:
    call.count(1)
    shape = call.tensor(0).shape
    axis: int = call.attribute("axis", 1)
    rank = len(shape)
    require(-rank <= axis <= rank, f"axis must be in [-{rank}, {rank}], but got {axis}")
    normalized_axis = axis + rank if axis < 0 else axis
    return _reshaped(call, (math.prod(shape[:normalized_axis]), math.prod(shape[normalized_axis:])))


@imports("Squeeze")
def _squeeze(call: Call) -> Tensor:
    call.count(1, 2)
    shape = call.tensor(0).shape
    axes = integers_of(call, 1, "axes")
    removed = (
        [i for i, extent in enumerate(shape) if extent == 1] if axes is None else normalized_axes(axes, len(shape))
    )
    holds = all(shape[i] == 1 for i in removed)
    require(holds, f"axes must name extents of 1 in {list(shape)}, but got {removed}")
    return _reshaped(call, [extent for i, extent in enumerate(shape) if i not in removed])


@imports("Unsqueeze")
def _unsqueeze(call: Call) -> Tensor:
    call.count(1, 2)
    axes = integers_of(call, 1, "axes")
    require(axes is not None, "axes must be given")
    shape = list(call.tensor(0).shape)
    for normalized_axis in sorted(normalized_axes(axes or (), len(shape) + len(axes or ()))):
        shape.insert(normalized_axis, 1)
    return _reshaped(call, shape)


def normalized_axes(axes: Sequence[int], rank: int) -> list[int]:
    """Dimensions by their numbers, negative ones counted from the end."""
    holds = all(-rank <= axis < rank for axis in axes)
    require(holds, f"axes must be in [-{rank}, {rank}), but got {list(axes)}")
    return [axis % rank for axis in axes]


@imports("Expand")
def _expand(call: Call) -> Tensor:
    """An extent of 1 in the wanted shape keeps the input's."""
    call.count(2)
    wanted, found = integers_of(call, 1, "shape") or (), call.tensor(0).shape
    try:
        shape = np.broadcast_shapes(found, wanted)
    except ValueError:
        shape = None
    require(shape is not None, f"shape must be one that {list(found)} broadcasts with, but got {list(wanted)}")
    require(0 not in (shape or ()), f"result must have elements, but has the shape {list(shape or ())}")
    return moved(call, Broadcasting(shape or ()))


@imports("Identity")
def _identity(call: Call) -> Tensor:
    return call.tensor(0)


@imports("Dropout")
def _dropout(call: Call) -> tuple[Tensor, ...]:
    """Inference drops nothing; the mask of what is kept is true."""
    call.count(1, 3)
    call.ignore("ratio", "seed")
    trains = call.optional(2) is not None and call.number(2) != 0
    require(not trains, "training_mode must be 0, but got 1")
    shape = call.tensor(0).shape
    if not any(call.node.outputs[1:]):
        return (call.tensor(0),)
    call.plan.budget.spend_constant(shape, 1)
    return call.tensor(0), Constant(np.ones(shape, np.bool_))
