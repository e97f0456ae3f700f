"""Transpose, Reshape, Flatten, Squeeze, Unsqueeze, Pad, Identity, Cast and Dropout: numbers stay what they are.

Moving real numbers moves their codes, so a movement goes to whichever side of a quantization has integers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import PadOp
from qdialect.dialect.type_constraints import element_of
from qdialect.frontends.common import Shape, UnsupportedError, require
from qdialect.frontends.onnx.emitter import Emitter, Placed, Value
from qdialect.frontends.onnx.model import ELEMENTS, Array
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import (
    Constant,
    Parameters,
    Plan,
    Quantized,
    Real,
    Tensor,
    known,
    shape_of,
)


@dataclass(frozen=True)
class Movement(ABC):
    """A way to move the elements of a tensor; `shape` is the result's."""

    shape: Shape

    @abstractmethod
    def array(self, array: Array) -> Array:
        """A moved array."""

    @abstractmethod
    def emit(self, emitter: Emitter, value: ir.Value, to: Parameters | None) -> ir.Value:
        """Codes moved by ops; `to` says what they mean, where that is known."""

    def axis(self, axis: int) -> int:
        """Where dimension `axis`, which has parameters of its own, comes to lie."""
        raise UnsupportedError("tensor with a scale for each channel must not be moved")


@dataclass(frozen=True)
class Transposition(Movement):
    """Dimensions in another order."""

    order: tuple[int, ...]

    def array(self, array: Array) -> Array:
        return np.ascontiguousarray(array.transpose(self.order))

    def emit(self, emitter: Emitter, value: ir.Value, to: Parameters | None) -> ir.Value:
        return emitter.transpose(value, self.order)

    def axis(self, axis: int) -> int:
        return self.order.index(axis)


@dataclass(frozen=True)
class Reshaping(Movement):
    """Another shape of as many elements."""

    def array(self, array: Array) -> Array:
        return array.reshape(self.shape)

    def emit(self, emitter: Emitter, value: ir.Value, to: Parameters | None) -> ir.Value:
        return emitter.reshape(value, self.shape)


@dataclass(frozen=True)
class Padding(Movement):
    """Cells with the number `fill` around the tensor."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    fill: float

    def array(self, array: Array) -> Array:
        return np.pad(array, list(zip(self.low, self.high, strict=True)), constant_values=self.fill)

    def emit(self, emitter: Emitter, value: ir.Value, to: Parameters | None) -> ir.Value:
        code = int(self.fill) if to is None else to.code(self.fill)
        attributes = {"low": self.low, "high": self.high, "value": code}
        return emitter.build(PadOp, value, element=element_of(value.type), **attributes)


@dataclass(frozen=True, eq=False)
class Moved(Real):
    """Moved real numbers: once they are codes, those are moved."""

    source: Real
    movement: Movement

    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        return move_codes(plan, name, self.source.quantized(plan, name, to), self.movement, to)

    def real(self, plan: Plan, name: str) -> Value:
        raise UnsupportedError("a float tensor must not be transposed, reshaped or padded without a QuantizeLinear")


def move_codes(plan: Plan, name: str, codes: Value, movement: Movement, to: Parameters | None) -> Value:
    """Codes moved, in the order of dimensions that the model gives them; `to` says what they mean."""
    if codes.data is not None and not isinstance(movement, Padding):
        return known(name, movement.array(codes.data))

    def emit(emitter: Emitter) -> Placed:
        return movement.emit(emitter, emitter.plain(codes), to), False

    return plan.compute(name, movement.shape, codes.element, emit)


def moved(call: Call, movement: Movement) -> Tensor:
    """Input 0 of a node, moved."""
    source = call.tensor(0)
    if isinstance(source, Constant):
        return Constant(movement.array(source.array))
    if isinstance(source, Value):
        return move_codes(call.plan, call.name, source, movement, None)
    if not isinstance(source, Quantized):
        return Moved(movement.shape, source, movement)
    whole = len(source.scales) == 1
    to = source.parameters if whole else None
    axis = source.axis if whole else movement.axis(source.axis)
    codes = move_codes(call.plan, call.name, source.codes, movement, to)
    return Quantized(movement.shape, codes, source.scales, source.zero_points, axis)


def _reshaped(call: Call, shape: Sequence[int]) -> Tensor:
    found = shape_of(call.tensor(0))
    holds = math.prod(shape) == math.prod(found)
    require(holds, f"shape must have {math.prod(found)} elements, but got {list(shape)}")
    return moved(call, Reshaping(tuple(shape)))


def integers_of(call: Call, index: int, name: str) -> tuple[int, ...] | None:
    """A list of integers that is a constant input in later operator sets and an attribute in old ones."""
    if call.optional(index) is not None:
        return tuple(int(value) for value in call.constant(index).ravel())
    found = call.node.attributes.get(name)
    return None if found is None else tuple(call.attribute(name, [0]))


@imports("Transpose")
def _transpose(call: Call) -> Tensor:
    call.count(1)
    shape = shape_of(call.tensor(0))
    order: tuple[int, ...] = tuple(call.attribute("perm", list(range(len(shape)))[::-1]))
    holds = sorted(order) == list(range(len(shape)))
    require(holds, f"perm must order {len(shape)} dimensions, but got {list(order)}")
    return moved(call, Transposition(tuple(shape[axis] for axis in order), order))


@imports("Reshape")
def _reshape(call: Call) -> Tensor:
    """A zero keeps the extent, -1 stands for whatever is left."""
    call.count(1, 2)
    wanted = integers_of(call, 1, "shape")
    require(wanted is not None, "shape must be given")
    assert wanted is not None
    source = shape_of(call.tensor(0))
    keeps = call.attribute("allowzero", 0) == 0
    kept = [source[i] if extent == 0 and keeps and i < len(source) else extent for i, extent in enumerate(wanted)]
    holds = kept.count(-1) <= 1 and min(kept, default=1) >= -1
    require(holds, f"shape must have at most one unknown extent, but got {list(wanted)}")
    known_part = math.prod(extent for extent in kept if extent != -1)
    require(-1 not in kept or known_part >= 1, f"shape must not be empty, but got {list(wanted)}")
    return _reshaped(call, [math.prod(source) // known_part if extent == -1 else extent for extent in kept])


@imports("Flatten")
def _flatten(call: Call) -> Tensor:
    call.count(1)
    shape = shape_of(call.tensor(0))
    axis: int = call.attribute("axis", 1)
    rank = len(shape)
    require(-rank <= axis <= rank, f"axis must be in [-{rank}, {rank}], but got {axis}")
    place = axis + rank if axis < 0 else axis
    return _reshaped(call, (math.prod(shape[:place]), math.prod(shape[place:])))


@imports("Squeeze")
def _squeeze(call: Call) -> Tensor:
    call.count(1, 2)
    shape = shape_of(call.tensor(0))
    axes = integers_of(call, 1, "axes")
    removed = [i for i, extent in enumerate(shape) if extent == 1] if axes is None else _places(axes, len(shape))
    holds = all(shape[i] == 1 for i in removed)
    require(holds, f"axes must name extents of 1 in {list(shape)}, but got {removed}")
    return _reshaped(call, [extent for i, extent in enumerate(shape) if i not in removed])


@imports("Unsqueeze")
def _unsqueeze(call: Call) -> Tensor:
    call.count(1, 2)
    axes = integers_of(call, 1, "axes")
    require(axes is not None, "axes must be given")
    shape = list(shape_of(call.tensor(0)))
    for place in sorted(_places(axes or (), len(shape) + len(axes or ()))):
        shape.insert(place, 1)
    return _reshaped(call, shape)


def _places(axes: Sequence[int], rank: int) -> list[int]:
    holds = all(-rank <= axis < rank for axis in axes)
    require(holds, f"axes must be in [-{rank}, {rank}), but got {list(axes)}")
    return [axis % rank for axis in axes]


@imports("Pad")
def _pad(call: Call) -> Tensor:
    """Amounts and the number to fill with are attributes in old operator sets and constant inputs in later ones."""
    call.count(1, 4)
    require(call.attribute("mode", "constant") == "constant", "mode must be constant")
    amounts = integers_of(call, 1, "pads")
    require(call.optional(3) is None, "input 3, axes, is not supported")
    shape = shape_of(call.tensor(0))
    rank = len(shape)
    holds = amounts is not None and len(amounts) == 2 * rank and all(amount >= 0 for amount in amounts)
    require(holds, f"pads must be {2 * rank} integers of at least 0, but got {amounts}")
    assert amounts is not None
    low, high = amounts[:rank], amounts[rank:]
    grown = tuple(extent + before + after for extent, before, after in zip(shape, low, high, strict=True))
    return moved(call, Padding(grown, low, high, _fill_of(call)))


def _fill_of(call: Call) -> float:
    tensor = call.optional(2)
    if isinstance(tensor, Quantized) and tensor.reals() is not None:
        return float(np.asarray(tensor.reals()).ravel()[0])
    if tensor is not None:
        return float(call.constant(2).ravel()[0])
    return call.attribute("value", 0.0)


@imports("Identity", "Dropout")
def _identity(call: Call) -> Tensor:
    """Dropout drops nothing when it infers."""
    return call.tensor(0)


@imports("Cast")
def _cast(call: Call) -> Tensor:
    """To the type that the tensor has."""
    call.count(1)
    source = call.tensor(0)
    target = ELEMENTS.get(call.attribute("to", 0), "another type")
    found = source.element if isinstance(source, Value) else "f32"
    require(found == target, f"must keep the type {found}, but casts to {target}")
    return source
