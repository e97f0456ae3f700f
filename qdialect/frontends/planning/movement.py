"""Moves and joins the elements of tensors, as quantized values and as f32 values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from qdialect.dialect import ConcatOp, DynamicGatherOp
from qdialect.dialect.op_base import MAX_VARIADIC
from qdialect.dialect.type_constraints import element_of
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, check_shape, require
from qdialect.frontends.building.slices import Slice, framed, gather, take_slices
from qdialect.frontends.planning import tensors
from qdialect.frontends.planning.block_weights import BlockQuantized, gathered_rows
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value, channels_last
from qdialect.ir._mlir import ir

# Moving f32 values moves their quantized values, so a movement goes to whichever side of a quantization has integers.


@dataclass(frozen=True)
class Movement(ABC):
    """A way to move the elements of a tensor; `shape` is the result's."""

    shape: Shape

    @property
    def wants_channels_last(self) -> bool:
        """Whether `emit` takes and gives tensors with their channels last."""
        return False

    @property
    def is_known(self) -> bool:
        """Whether a tensor that is known can be moved when the model is read."""
        return True

    @abstractmethod
    def array(self, array: Array) -> Array:
        """A moved array."""

    @abstractmethod
    def emit(self, emitter: Emitter, value: ir.Value, to: tensors.QuantizedTensorType | None) -> ir.Value:
        """Quantized values moved by ops; `to` is their quantization, if that is known."""

    def ordered(self, order: Sequence[int]) -> Movement | None:
        """The same movement of a tensor with its dimensions in this order; None where that is impossible."""
        return None

    def in_quantized(self, to: tensors.QuantizedTensorType | None) -> Movement:
        """The same movement of integers; `to` is the quantization of quantized values."""
        del to
        return self

    def axis(self, axis: int, before: Shape) -> int:
        """Where dimension `axis` of a tensor of shape `before`, which has parameters of its own, comes to lie."""
        raise UnsupportedError("tensor with a scale for each channel must not be moved")


@dataclass(frozen=True)
class Transposition(Movement):
    """Dimensions in another order."""

    order: tuple[int, ...]

    @classmethod
    def of(cls, before: Shape, order: tuple[int, ...]) -> Self:
        """Of a tensor of shape `before`."""
        return cls(tuple(before[axis] for axis in order), order)

    def array(self, array: Array) -> Array:
        return array.transpose(self.order).copy()

    def emit(self, emitter: Emitter, value: ir.Value, to: tensors.QuantizedTensorType | None) -> ir.Value:
        return emitter.transpose(value, self.order)

    def axis(self, axis: int, before: Shape) -> int:
        return self.order.index(axis)


@dataclass(frozen=True)
class Reshaping(Movement):
    """Another shape of the same number of elements."""

    def array(self, array: Array) -> Array:
        return array.reshape(self.shape)

    def emit(self, emitter: Emitter, value: ir.Value, to: tensors.QuantizedTensorType | None) -> ir.Value:
        return emitter.reshape(value, self.shape)


@dataclass(frozen=True)
class Broadcasting(Movement):
    """Repeated along dimensions of extent 1 and along new ones."""

    def array(self, array: Array) -> Array:
        return np.broadcast_to(array, self.shape)

    def emit(self, emitter: Emitter, value: ir.Value, to: tensors.QuantizedTensorType | None) -> ir.Value:
        return emitter.broadcast(value, self.shape)

    def axis(self, axis: int, before: Shape) -> int:
        after = axis + len(self.shape) - len(before)
        holds = self.shape[after] == before[axis]
        require(holds, "tensor must not be repeated along the dimension of its scales")
        return after


@dataclass(frozen=True)
class Padding(Movement):
    """Elements with the number `fill` around the tensor."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    fill: float

    def array(self, array: Array) -> Array:
        return np.pad(array, list(zip(self.low, self.high, strict=True)), constant_values=self.fill)

    def in_quantized(self, to: tensors.QuantizedTensorType | None) -> Movement:
        return replace(self, fill=int(self.fill) if to is None else to.quantize_scalar(self.fill))

    def emit(self, emitter: Emitter, value: ir.Value, to: tensors.QuantizedTensorType | None) -> ir.Value:
        fill = self.fill if to is None else to.quantize_scalar(self.fill)
        return framed(emitter, value, self.low, self.high, fill=fill)

    def is_exact_in(self, by: tensors.Quantized) -> bool:
        """Whether the filling is the f32 value of a quantized value."""
        if len(by.scales) > 1:
            return False
        parameters = by.parameters
        quantized = parameters.quantize_scalar(self.fill)
        return np.float32((quantized - parameters.zero_point) * np.float32(parameters.scale)) == np.float32(self.fill)

    def ordered(self, order: Sequence[int]) -> Movement:
        shape, low, high = (tuple(values[i] for i in order) for values in (self.shape, self.low, self.high))
        return Padding(shape, low, high, self.fill)


@dataclass(frozen=True)
class Slicing(Movement):
    """Some elements of each dimension."""

    slices: tuple[Slice, ...]

    @classmethod
    def of(cls, slices: Sequence[Slice]) -> Self:
        """One slice for each dimension."""
        return cls(tuple(one.count for one in slices), tuple(slices))

    def array(self, array: Array) -> Array:
        return array[(*(one.index for one in self.slices), ...)].copy()

    def emit(self, emitter: Emitter, value: ir.Value, to: tensors.QuantizedTensorType | None) -> ir.Value:
        return take_slices(emitter, value, self.slices)

    def ordered(self, order: Sequence[int]) -> Movement:
        return Slicing(tuple(self.shape[i] for i in order), tuple(self.slices[i] for i in order))

    def axis(self, axis: int, before: Shape) -> int:
        own = self.slices[axis]
        is_whole = own.step > 0 and own.count == before[axis]
        require(is_whole, "tensor must not be sliced along the dimension of its scales")
        return axis


@dataclass(frozen=True)
class Gathering(Movement):
    """The elements at `indices` along a dimension."""

    along: int
    indices: tuple[int, ...]

    @classmethod
    def of(cls, before: Shape, along: int, indices: Sequence[int]) -> Self:
        """Along dimension `along` of a tensor of shape `before`."""
        return cls((*before[:along], len(indices), *before[along + 1 :]), along, tuple(indices))

    def array(self, array: Array) -> Array:
        return np.take(array, self.indices, axis=self.along)

    def emit(self, emitter: Emitter, value: ir.Value, to: tensors.QuantizedTensorType | None) -> ir.Value:
        return gather(emitter, value, self.along, self.indices)

    def ordered(self, order: Sequence[int]) -> Movement:
        return Gathering(tuple(self.shape[i] for i in order), list(order).index(self.along), self.indices)

    def axis(self, axis: int, before: Shape) -> int:
        require(axis != self.along, "elements must not be gathered along the dimension of their scales")
        return axis


@dataclass(frozen=True)
class DynamicGathering(Movement):
    """The elements at `indices`, which are known at run time alone, along a dimension."""

    along: int
    indices: Value

    @property
    def is_known(self) -> bool:
        return False

    def array(self, array: Array) -> Array:
        raise UnsupportedError("indices must be known to gather when the model is read")

    def emit(self, emitter: Emitter, value: ir.Value, to: tensors.QuantizedTensorType | None) -> ir.Value:
        indices = emitter.to_channels_first(self.indices)
        return emitter.build(DynamicGatherOp, value, indices, element=element_of(value.type), axis=self.along)

    def axis(self, axis: int, before: Shape) -> int:
        require(axis != self.along, "elements must not be gathered along the dimension of their scales")
        return axis if axis < self.along else axis + len(self.indices.shape) - 1


@dataclass(frozen=True, eq=False)
class Moved(tensors.F32Tensor):
    """Moved f32 values: once they are quantized values, those are moved."""

    source: tensors.F32Tensor
    movement: Movement

    def nan_of(self, plan: tensors.Plan) -> Sequence[tensors.F32Tensor]:
        return (self.source,)

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        return move_value(plan, name, self.source.quantized(plan, name, to), self.movement, to)

    def _f32(self, plan: tensors.Plan, name: str) -> Value:
        rows = None
        if isinstance(self.movement, DynamicGathering):
            rows = gathered_rows(plan, name, self.source, self.movement.indices, self.movement.along)
        return rows or move_value(plan, name, self.source.f32(plan, name), self.movement, None)


def move(plan: tensors.Plan, name: str, source: tensors.Tensor, movement: Movement) -> tensors.Tensor:
    """`source`, moved."""
    check_shape(movement.shape, "result")
    if isinstance(source, tensors.Constant):
        if movement.is_known:
            return tensors.Constant(_moved(plan, source.array, movement))
        value = move_value(plan, name, tensors.known(name, source.array), movement, None)
        return tensors.Computed(value.shape, value) if value.element == "f32" else value
    if isinstance(source, Value):
        return move_value(plan, name, source, movement, None)
    if isinstance(source, BlockQuantized) and isinstance(movement, Transposition):
        return source.transposed(movement.order)
    if not isinstance(source, tensors.Quantized | BlockQuantized):
        return Moved(movement.shape, source, movement)
    try:
        return _moved_quantized(plan, name, source, movement)
    except UnsupportedError:
        values = source.f32_values() if movement.is_known else None
        if values is None:
            return Moved(movement.shape, source, movement)
        return tensors.Constant(_moved(plan, values, movement))


def _moved_quantized(plan: tensors.Plan, name: str, source: tensors.F32Tensor, movement: Movement) -> tensors.Quantized:
    """Raises `UnsupportedError` where the scales cannot follow, or the filling is no quantized value."""
    if not isinstance(source, tensors.Quantized):
        raise UnsupportedError("tensor in blocks must not be moved")
    if isinstance(movement, Padding):
        require(movement.is_exact_in(source), "filling must be the f32 value of a quantized value")
    per_tensor = len(source.scales) == 1
    to = source.parameters if per_tensor else None
    axis = source.axis if per_tensor else movement.axis(source.axis, source.shape)
    values = move_value(plan, name, source.values, movement, to)
    return replace(source, shape=movement.shape, values=values, axis=axis)


def gathered(plan: tensors.Plan, name: str, source: tensors.Tensor, indices: Value, axis: int) -> tensors.Tensor:
    """The elements of a tensor at run-time indices; quantized values stay quantized where one scale is for all."""
    shape = (*source.shape[:axis], *indices.shape, *source.shape[axis + 1 :])
    movement = DynamicGathering(shape, axis, indices)
    try:
        return move(plan, name, source, movement)
    except UnsupportedError:
        if not isinstance(source, tensors.F32Tensor):
            raise
        return move(plan, name, tensors.Computed(source.shape, source.f32(plan, name)), movement)


def _moved(plan: tensors.Plan, array: Array, movement: Movement) -> Array:
    plan.budget.spend_constant(movement.shape, array.dtype.itemsize)
    return movement.array(array)


def move_value(
    plan: tensors.Plan, name: str, value: Value, movement: Movement, to: tensors.QuantizedTensorType | None
) -> Value:
    """Integers or floats, moved; `to` is the quantization of quantized values, if that is known."""
    is_f32_padding = isinstance(movement, Padding) and value.element == "f32"
    if value.data is not None and movement.is_known and not is_f32_padding:
        return tensors.known(name, _moved(plan, value.data, movement.in_quantized(to)))

    def emit(emitter: Emitter) -> Emitted:
        if movement.wants_channels_last:
            return movement.emit(emitter, emitter.last(value), to), True
        held, is_channels_last = emitter.either(value)
        ordered = movement.ordered(channels_last(len(value.shape))) if is_channels_last else None
        if ordered is None:
            return movement.emit(emitter, emitter.to_channels_first(value), to), False
        return ordered.emit(emitter, held, to), True

    return plan.compute(name, movement.shape, value.element, emit)


# Tensors side by side along a dimension.


@dataclass(frozen=True, eq=False)
class Joined(tensors.F32Tensor):
    """f32 values side by side along `axis`; their quantized values get one scale by a table for each part."""

    parts: tuple[tensors.F32Tensor, ...]
    axis: int

    def nan_of(self, plan: tensors.Plan) -> Sequence[tensors.F32Tensor]:
        return self.parts

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        if to.element not in tensors.EIGHT_BIT:
            return super()._quantized(plan, name, to)
        return self.concatenated(plan, name, [part.quantized(plan, name, to) for part in self.parts], to)

    def concatenated(
        self, plan: tensors.Plan, name: str, values: Sequence[Value], to: tensors.QuantizedTensorType
    ) -> Value:
        """Quantized values of the parameters `to` side by side."""
        attributes = {
            "input_scales": (to.scale,) * len(values),
            "input_zero_points": (to.zero_point,) * len(values),
            "output_scale": to.scale,
            "output_zero_point": to.zero_point,
            **to.profile.rescale,
        }

        def emit(emitter: Emitter) -> Emitted:
            operands, is_channels_last = emitter.alike(values)
            axis = tensors.stored_axis(self.axis, len(self.shape), is_channels_last)
            if len(operands) > MAX_VARIADIC:
                return emitter.concatenate(operands, axis), is_channels_last
            return emitter.build(ConcatOp, *operands, element=to.element, axis=axis, **attributes), is_channels_last

        return plan.compute(name, self.shape, to.element, emit)

    def _f32(self, plan: tensors.Plan, name: str) -> Value:
        values = [part.f32(plan, name) for part in self.parts]

        def emit(emitter: Emitter) -> Emitted:
            operands, is_channels_last = emitter.alike(values)
            return emitter.concatenate(operands, tensors.stored_axis(self.axis, len(self.shape), is_channels_last)), (
                is_channels_last
            )

        return plan.compute(name, self.shape, "f32", emit)


def joined(parts: Sequence[tensors.F32Tensor], axis: int, name: str | None = None) -> Joined:
    """`parts` side by side along dimension `axis`; raises `UnsupportedError` where they differ in another dimension."""
    require(len(parts) >= 1, "must have at least 1 part, but got 0")
    return Joined(joined_shape([part.shape for part in parts], axis), tuple(parts), axis, name=name)


def joined_shape(shapes: Sequence[Shape], axis: int) -> Shape:
    """The shape of tensors of `shapes` side by side; raises `UnsupportedError` if they differ in another dimension."""
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    ranks = {len(shape) for shape in shapes}
    require(len(others) == len(ranks) == 1, f"parts must agree but for axis {axis}, but got {sorted(others)}")
    first = shapes[0]
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def concatenation(plan: tensors.Plan, name: str, whole: Joined) -> tensors.F32Tensor:
    """The planned `whole`: parts of the same quantization keep it."""
    parts = [part for part in whole.parts if isinstance(part, tensors.Quantized) and part.is_eight_bit]
    to = parts[0].parameters if parts else None
    if to is None or len(parts) < len(whole.parts) or not all(to.same_meaning(part.parameters) for part in parts):
        return whole
    return parts[0].with_values(whole.concatenated(plan, name, [part.values for part in parts], to))
