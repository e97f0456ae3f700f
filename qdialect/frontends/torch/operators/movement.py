"""Operators that move numbers and change none: shapes, orders of dimensions and parts.

Moving f32 values moves their quantized values, so a movement goes to whichever side of a quantization has integers.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.building.checks import axes_in, axis_in, require
from qdialect.frontends.building.slices import Slice, check_indices
from qdialect.frontends.planning import movement as moves
from qdialect.frontends.planning.elementwise import element_type
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import Constant, Tensor
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.operators.tensors import RunTimeQuantized
from qdialect.frontends.torch.program.model import Ref


def moved(call: Call, tensor: Tensor, movement: moves.Movement) -> Tensor:
    """A tensor of the call, moved."""
    if not isinstance(tensor, RunTimeQuantized) or not tensor.parameters.is_of_tensor:
        return moves.move(call.plan, call.name, tensor, movement)
    values = moves.move_value(call.plan, call.name, tensor.values, movement, None)
    source = None if tensor.source is None else moves.Moved(movement.shape, tensor.source, movement)
    return replace(tensor, shape=movement.shape, name=call.name, values=values, source=source)


@imports(
    *("flatten.using_ints", "unflatten.int", "reshape.default", "view.default", "_unsafe_view.default"),
    *("unsqueeze.default", "squeeze.dim", "squeeze.dims", "squeeze.default"),
)
def _reshape(call: Call) -> Result:
    # The recorded shape has it.
    call.ignore("dim")
    return _reshaped(call, call.tensor("input" if "input" in call.node.arguments else "self"))


def _reshaped(call: Call, tensor: Tensor) -> Tensor:
    """To the shape that PyTorch found."""
    return moved(call, tensor, moves.Reshaping(call.node.outputs[0].shape))


def _transposed(call: Call, order: tuple[int, ...]) -> Tensor:
    return transposed(call, call.tensor("self"), order)


def transposed(call: Call, tensor: Tensor, order: tuple[int, ...]) -> Tensor:
    """A tensor with its dimensions in another order."""
    return moved(call, tensor, moves.Transposition.of(tensor.shape, order))


@imports("permute.default")
def _permute(call: Call) -> Result:
    rank = len(call.tensor("self").shape)
    order = tuple(axis % max(rank, 1) for axis in call.integers("dims", rank))
    require(sorted(order) == list(range(rank)), f"dims must order {rank} dimensions, but got {list(order)}")
    return _transposed(call, order)


@imports("transpose.int")
def _transpose(call: Call) -> Result:
    order = list(range(len(call.tensor("self").shape)))
    left, right = (call.integers(name, 1)[0] for name in ("dim0", "dim1"))
    order[left], order[right] = order[right], order[left]
    return _transposed(call, tuple(order))


@imports("t.default", "numpy_T.default")
def _reverse_axes(call: Call) -> Result:
    return _transposed(call, tuple(range(len(call.tensor("self").shape)))[::-1])


@imports(
    *("dropout.default", "feature_dropout.default", "contiguous.default", "clone.default"),
    *("alias.default", "detach.default", "lift_fresh_copy.default"),
)
def _identity(call: Call) -> Result:
    """Dropout drops nothing when it infers; the layout in memory does not change a graph."""
    require(not call.argument("train"), "dropout must not train")
    return call.tensor("input" if "input" in call.node.arguments else "self")


@imports("native_dropout.default")
def _native_dropout(call: Call) -> Result:
    """What is kept, and where: everywhere."""
    require(not call.argument("train"), "dropout must not train")
    source = call.tensor("input")
    return source, Constant(np.ones(source.shape, np.bool_))


def part_of(call: Call, tensor: Tensor, axis: int, begin: int, end: int, step: int = 1) -> Tensor:
    """The indices from `begin` up to `end` of a dimension, each `step`th; a constant where there are none."""
    extent = tensor.shape[axis]
    size = len(range(begin, min(end, extent), step))
    if size == 0:
        shape = (*tensor.shape[:axis], 0, *tensor.shape[axis + 1 :])
        return Constant(np.zeros(shape, NUMPY_DTYPES[element_type(tensor)]))
    slices = [Slice(0, 1, whole) for whole in tensor.shape]
    slices[axis] = Slice(begin, step, size)
    return moved(call, tensor, moves.Slicing.of(slices))


def _axis(call: Call, rank: int) -> int:
    (axis,) = call.integers("dim", 1)
    return axis_in(axis, rank, "dim")


def _clamp(index: int, extent: int) -> int:
    """An index as PyTorch counts it: negative ones from the end, none beyond it."""
    return min(max(index + extent if index < 0 else index, 0), extent)


@imports("slice.Tensor")
def _slice(call: Call) -> Result:
    tensor = call.tensor("self")
    axis = _axis(call, len(tensor.shape))
    extent = tensor.shape[axis]
    begin, end, (step,) = call.argument("start") or 0, call.argument("end"), call.integers("step", 1)
    return part_of(call, tensor, axis, _clamp(begin, extent), extent if end is None else _clamp(end, extent), step)


@imports("select.int")
def _select(call: Call) -> Result:
    """One index, whose dimension goes."""
    tensor = call.tensor("self")
    axis = _axis(call, len(tensor.shape))
    begin = _clamp(call.integers("index", 1)[0], tensor.shape[axis])
    return _reshaped(call, part_of(call, tensor, axis, begin, begin + 1))


@imports("unbind.int")
def _unbind(call: Call) -> Result:
    """Every index of a dimension, which goes."""
    tensor = call.tensor("self")
    axis = _axis(call, len(tensor.shape))
    shape = tuple(extent for other, extent in enumerate(tensor.shape) if other != axis)
    parts = (part_of(call, tensor, axis, index, index + 1) for index in range(tensor.shape[axis]))
    return tuple(moved(call, part, moves.Reshaping(shape)) for part in parts)


@imports("expand.default")
def _expand(call: Call) -> Result:
    """Repeated along dimensions of extent 1 and along new ones."""
    tensor, shape = call.tensor("self"), call.node.outputs[0].shape
    rank = len(tensor.shape)
    kept = {axis for axis in range(rank) if tensor.shape[axis] == shape[axis - rank]}
    holds = all(tensor.shape[axis] == 1 or axis in kept for axis in range(rank)) and rank <= len(shape)
    require(holds, f"input must broadcast to {list(shape)}, but has the shape {list(tensor.shape)}")
    return moved(call, tensor, moves.Broadcasting(shape))


def gathered(call: Call, tensor: Tensor, axis: int, indices: tuple[int, ...]) -> Tensor:
    """The elements at known indices of a dimension."""
    check_indices(len(indices), call.plan.budget)
    extent = tensor.shape[axis]
    holds = len(indices) >= 1 and all(-extent <= index < extent for index in indices)
    require(holds, f"indices must be in [-{extent}, {extent}), at least one")
    return moved(call, tensor, moves.Gathering.of(tensor.shape, axis, tuple(index % extent for index in indices)))


@imports("as_strided.default")
def _strided(call: Call) -> Result:
    """Elements at distances in memory, which is that of the operand where this is contiguous."""
    source = call.given("self")
    require(isinstance(source, Ref) and call.noted[source.name].is_contiguous, "operand must be contiguous")
    tensor, shape = call.tensor("self"), call.node.outputs[0].shape
    strides, begin = call.integers("stride", len(shape)), call.argument("storage_offset") or 0
    check_indices(math.prod(shape), call.plan.budget)
    distances = (np.arange(extent) * stride for extent, stride in zip(shape, strides, strict=True))
    indices = begin + sum(np.ix_(*distances), np.zeros(shape, np.int64))
    flat = moved(call, tensor, moves.Reshaping((math.prod(tensor.shape),)))
    return moved(call, gathered(call, flat, 0, tuple(indices.ravel().tolist())), moves.Reshaping(shape))


@imports("flip.default")
def _flip(call: Call) -> Result:
    tensor = call.tensor("self")
    for axis in axes_in(call.dimensions("dims"), len(tensor.shape), "dims"):
        tensor = gathered(call, tensor, axis, tuple(reversed(range(tensor.shape[axis]))))
    return tensor


@imports(
    *("split.Tensor", "split_with_sizes.default", "chunk.default"),
    *("unsafe_split.Tensor", "unsafe_split_with_sizes.default", "unsafe_chunk.default"),
)
def _split(call: Call) -> Result:
    """Parts with the extents that PyTorch found."""
    tensor = call.tensor("self")
    axis = _axis(call, len(tensor.shape))
    parts: list[Tensor] = []
    begin = 0
    for output in call.node.outputs:
        end = begin + output.shape[axis]
        parts.append(part_of(call, tensor, axis, begin, end))
        begin = end
    return tuple(parts)
