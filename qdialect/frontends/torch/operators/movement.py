"""Operators that move numbers and change none: shapes, orders of dimensions and parts.

Moving f32 values moves their quantized values, so a movement goes to whichever side of a quantization has integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import SliceOp
from qdialect.dialect.type_constraints import element_of
from qdialect.frontends.budget import check_shape
from qdialect.frontends.common import Array, Shape, UnsupportedError, require
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.plain import tensor_of, value_of_tensor
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import Constant, F32Tensor, Plan, Tensor, known
from qdialect.frontends.slices import check_indices, gather
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.run_time import RunTimeQuantized
from qdialect.frontends.torch.tensors import Quantized


@dataclass(frozen=True)
class Movement:
    """A way to move elements, to `shape`: of an array, where it is known when the program is read, and by ops.

    `axis` says where a dimension comes to lie that has a scale for each index.
    """

    shape: Shape
    array: Callable[[Array], Array] | None
    emit: Callable[[Emitter, ir.Value], ir.Value]
    axis: Callable[[int], int]


@dataclass(frozen=True, eq=False)
class Moved(F32Tensor):
    """Moved f32 values: once they are quantized values, those are moved."""

    source: F32Tensor
    movement: Movement

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        return _move(plan, name, self.source.quantized(plan, name, to), self.movement)

    def _f32(self, plan: Plan, name: str) -> Value:
        return _move(plan, name, self.source.f32(plan, name), self.movement)


def _move(plan: Plan, name: str, value: Value, movement: Movement) -> Value:
    if value.data is not None and movement.array is not None:
        return known(name, np.ascontiguousarray(movement.array(value.data)))

    def emit(emitter: Emitter) -> Emitted:
        return movement.emit(emitter, emitter.to_channels_first(value)), False

    return plan.compute(name, movement.shape, value.element, emit)


def moved(call: Call, tensor: Tensor, movement: Movement) -> Tensor:
    """A tensor of the call, moved."""
    if isinstance(tensor, Constant) and movement.array is not None:
        return Constant(np.ascontiguousarray(movement.array(tensor.array)))
    if isinstance(tensor, Constant | Value):
        return tensor_of(_move(call.plan, call.name, value_of_tensor(call, tensor), movement))
    if isinstance(tensor, RunTimeQuantized) and tensor.parameters.is_of_tensor:
        values = _move(call.plan, call.name, tensor.values, movement)
        source = None if tensor.source is None else Moved(movement.shape, tensor.source, movement)
        return replace(tensor, shape=movement.shape, name=call.name, values=values, source=source)
    if not isinstance(tensor, Quantized):
        return Moved(movement.shape, tensor, movement)
    axis = tensor.axis if len(tensor.scales) == 1 else movement.axis(tensor.axis)
    values = _move(call.plan, call.name, tensor.values, movement)
    return Quantized(movement.shape, values, tensor.scales, tensor.zero_points, axis)


def _no_axis(_: int) -> int:
    raise UnsupportedError("tensor with a scale for each channel must not be moved")


@imports(
    "flatten.using_ints",
    "view.default",
    "_unsafe_view.default",
    "reshape.default",
    "unflatten.int",
    "unsqueeze.default",
    "squeeze.dim",
    "squeeze.dims",
    "squeeze.default",
)
def _reshape(call: Call) -> Result:
    return _reshaped(call, call.tensor("input" if "input" in call.node.arguments else "self"))


def _reshaped(call: Call, tensor: Tensor) -> Tensor:
    """To the shape that PyTorch found."""
    return moved(call, tensor, reshaping(call.node.outputs[0].shape))


def reshaping(shape: Shape) -> Movement:
    """To another shape of as many elements."""
    return Movement(
        shape, lambda array: array.reshape(shape), lambda emitter, value: emitter.reshape(value, shape), _no_axis
    )


def _transposed(call: Call, order: tuple[int, ...]) -> Tensor:
    return transposed(call, call.tensor("self"), order)


def transposed(call: Call, tensor: Tensor, order: tuple[int, ...]) -> Tensor:
    """A tensor with its dimensions in another order."""
    movement = Movement(
        tuple(tensor.shape[axis] for axis in order),
        lambda array: array.transpose(order),
        lambda emitter, value: emitter.transpose(value, order),
        order.index,
    )
    return moved(call, tensor, movement)


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
def _turn(call: Call) -> Result:
    return _transposed(call, tuple(range(len(call.tensor("self").shape)))[::-1])


@imports(
    "dropout.default",
    "feature_dropout.default",
    "native_dropout.default",
    "contiguous.default",
    "clone.default",
    "alias.default",
    "detach.default",
    "lift_fresh_copy.default",
)
def _identity(call: Call) -> Result:
    """Dropout drops nothing when it infers; the layout in memory does not change a graph."""
    require(not call.argument("train"), "dropout must not train")
    return call.tensor("input" if "input" in call.node.arguments else "self")


def part_of(call: Call, tensor: Tensor, axis: int, begin: int, end: int, step: int = 1) -> Tensor:
    """The indices from `begin` up to `end` of a dimension, each `step`th."""
    extent = tensor.shape[axis]
    size = len(range(begin, min(end, extent), step))
    require(size >= 1, f"part must not be empty, but takes [{begin}, {end}) of {extent}")
    index = tuple(slice(begin, end, step) if other == axis else slice(None) for other in range(len(tensor.shape)))
    shape = tuple(size if other == axis else whole for other, whole in enumerate(tensor.shape))
    attributes = {
        "begin": tuple(begin if other == axis else 0 for other in range(len(shape))),
        "size": shape,
        "strides": tuple(step if other == axis else 1 for other in range(len(shape))),
    }

    def emit(emitter: Emitter, value: ir.Value) -> ir.Value:
        return emitter.build(SliceOp, value, element=element_of(value.type), **attributes)

    def keep(other: int) -> int:
        require(other != axis, "tensor with a scale for each channel must not be cut between channels")
        return other

    return moved(call, tensor, Movement(shape, lambda array: array[index], emit, keep))


def _axis(call: Call, rank: int) -> int:
    (axis,) = call.integers("dim", 1)
    require(-rank <= axis < rank, f"dim must be in [-{rank}, {rank}), but got {axis}")
    return axis % rank


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
    return tuple(moved(call, part, reshaping(shape)) for part in parts)


@imports("expand.default")
def _expand(call: Call) -> Result:
    """Repeated along dimensions of extent 1 and along new ones."""
    tensor, shape = call.tensor("self"), call.node.outputs[0].shape
    rank = len(tensor.shape)
    kept = tuple(axis for axis in range(rank) if tensor.shape[axis] == shape[axis - rank])
    holds = all(tensor.shape[axis] == 1 or axis in kept for axis in range(rank)) and rank <= len(shape)
    require(holds, f"input must broadcast to {list(shape)}, but has the shape {list(tensor.shape)}")
    check_shape(shape, "result")
    if isinstance(tensor, Constant):
        call.plan.budget.spend_constant(shape, tensor.array.dtype.itemsize)

    def axis_of(axis: int) -> int:
        require(axis in kept, "tensor with a scale for each channel must not be repeated along its channels")
        return axis + len(shape) - rank

    movement = Movement(
        shape,
        lambda array: np.broadcast_to(array, shape),
        lambda emitter, value: emitter.broadcast(value, shape),
        axis_of,
    )
    return moved(call, tensor, movement)


def gathered(call: Call, tensor: Tensor, axis: int, indices: tuple[int, ...]) -> Tensor:
    """The elements at known indices of a dimension."""
    check_indices(len(indices), call.plan.budget)
    extent = tensor.shape[axis]
    holds = len(indices) >= 1 and all(-extent <= index < extent for index in indices)
    require(holds, f"indices must be in [-{extent}, {extent}), at least one")
    wanted = tuple(index % extent for index in indices)

    def keep(other: int) -> int:
        require(other != axis, "tensor with a scale for each channel must not be reordered between channels")
        return other

    movement = Movement(
        (*tensor.shape[:axis], len(wanted), *tensor.shape[axis + 1 :]),
        lambda array: np.take(array, wanted, axis=axis),
        lambda emitter, value: gather(emitter, value, axis, wanted),
        keep,
    )
    return moved(call, tensor, movement)


@imports("flip.default")
def _flip(call: Call) -> Result:
    tensor = call.tensor("self")
    rank = len(tensor.shape)
    for axis in call.dimensions("dims"):
        require(-rank <= axis < rank, f"dims must be in [-{rank}, {rank}), but got {axis}")
        extent = tensor.shape[axis % rank]
        tensor = gathered(call, tensor, axis % rank, tuple(reversed(range(extent))))
    return tensor


@imports(
    "split.Tensor",
    "split_with_sizes.default",
    "chunk.default",
    "unsafe_split.Tensor",
    "unsafe_split_with_sizes.default",
    "unsafe_chunk.default",
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
