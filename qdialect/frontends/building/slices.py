"""Slices of a tensor: the elements that a front end's slices take of each dimension, as ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.dialect import GatherOp, PadOp, SliceOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.building.checks import Budget, require
from qdialect.frontends.building.op_builder import OpBuilder
from qdialect.ir._mlir import ir


@dataclass(frozen=True)
class Slice:
    """`count` elements of a dimension: first, first + step, ...; the dimension itself goes away where `is_shrunk`."""

    first: int
    step: int
    count: int
    is_shrunk: bool = False

    @property
    def indices(self) -> tuple[int, ...]:
        """The elements, in order."""
        return tuple(range(self.first, self.first + self.step * self.count, self.step))

    @property
    def index(self) -> slice:
        """The same as an index of an array."""
        end = self.first + self.step * self.count
        return slice(self.first, end if end >= 0 else None, self.step)


def take_slices(builder: OpBuilder, value: ir.Value, slices: Sequence[Slice]) -> ir.Value:
    """The part of `value` that `slices` take, dimension by dimension; `value` itself if they take everything.

    A slice goes forwards, a gather whichever way.
    """
    for axis, one in enumerate(slices):
        if one.step < 0:
            value = gather(builder, value, axis, one.indices)
    forward = [one if one.step > 0 else Slice(0, 1, one.count) for one in slices]
    size = tuple(one.count for one in forward)
    if size == shape_of(value.type):
        return value
    begin, strides = tuple(one.first for one in forward), tuple(one.step for one in forward)
    return builder.build(SliceOp, value, element=element_of(value.type), begin=begin, size=size, strides=strides)


_NO_END = (np.iinfo(np.int32).max, np.iinfo(np.int64).max)


def taken_by_slice(extent: int, start: int, end: int, step: int) -> range:
    """The elements that ONNX's Slice takes.

    An end that is the largest integer of 32 or 64 bits is open in both directions. Backwards, a start before the first
    element is the first one.
    """
    # An end before the first element cannot be written as an index.
    is_open = end in _NO_END or (step < 0 and end < -extent)
    return range(extent)[slice(max(start, -extent), None if is_open else end, step)]


def gather(builder: OpBuilder, value: ir.Value, axis: int, indices: Sequence[int]) -> ir.Value:
    """The elements of `value` at `indices` along `axis`; itself where they are all in order."""
    whole = range(shape_of(value.type)[axis])
    if len(indices) == len(whole) and all(index == position for index, position in zip(indices, whole, strict=True)):
        return value
    return builder.build(GatherOp, value, element=element_of(value.type), axis=axis, indices=tuple(indices))


_LARGEST_WHOLE = 2**24


def framed(
    builder: OpBuilder, value: ir.Value, low: Sequence[int], high: Sequence[int], *, fill: float = 0
) -> ir.Value:
    """`value` with cells of `fill` before and after each dimension; fewer than none cut elements off."""
    shape = shape_of(value.type)
    kept = [Slice(max(-b, 0), 1, n + min(b, 0) + min(a, 0)) for n, b, a in zip(shape, low, high, strict=True)]
    value = take_slices(builder, value, kept)
    before, after = (tuple(max(amount, 0) for amount in amounts) for amounts in (low, high))
    if not any((*before, *after)):
        return value
    element = element_of(value.type)
    if element != "f32" or (float(fill).is_integer() and abs(fill) <= _LARGEST_WHOLE):
        return builder.build(PadOp, value, element=element, low=before, high=after, value=int(fill))
    # Zeros around the differences from `fill` would round: a mask marks the border.
    padded = framed(builder, value, before, after)
    inside = framed(builder, builder.number(0.0, shape_of(value.type)), before, after, fill=1)
    return builder.select(builder.compare("gt", inside, 0.5), fill, padded)


def spaced(builder: OpBuilder, value: ir.Value, steps: Sequence[int], fill: float = 0) -> ir.Value:
    """`value` with cells of `fill` behind each element, so that elements are `steps` apart along each dimension."""
    shape = shape_of(value.type)
    pairs = list(zip(shape, steps, strict=True))
    cells = [extent for n, step in pairs for extent in ((n, 1) if step > 1 else (n,))]
    high = [extent for step in steps for extent in ((0, step - 1) if step > 1 else (0,))]
    apart = framed(builder, builder.reshape(value, tuple(cells)), (0,) * len(high), high, fill=fill)
    return builder.reshape(apart, tuple(n * step for n, step in pairs))


MAX_INDICES = 1 << 20
"""Of one list."""

# Which element stands at an index outside: mirrored at the last one or behind it, the last one, from the other end.
_BORDERS: dict[str, Callable[[int, int], int]] = {
    "reflect": lambda index, extent: abs(index) if index < extent else 2 * (extent - 1) - index,
    "symmetric": lambda index, extent: index if 0 <= index < extent else (-1 if index < 0 else 2 * extent - 1) - index,
    "edge": lambda index, extent: min(max(index, 0), extent - 1),
    "wrap": lambda index, extent: index % extent,
}


def check_indices(count: int, budget: Budget) -> None:
    """`count` indices can be listed; raises `UnsupportedError`."""
    require(count <= MAX_INDICES, f"at most {MAX_INDICES} elements of a dimension can be placed, but got {count}")
    budget.spend_indices(count)


def border(extent: int, low: int, high: int, mode: str, what: str, budget: Budget) -> Sequence[int]:
    """Where each element of a dimension comes from that grows by `low` and `high` elements of its own.

    Raises `UnsupportedError`, which calls the amounts `what`, where the dimension has too few.
    """
    if low == high == 0:
        return range(extent)
    check_indices(low + extent + high, budget)
    mirrored = {"reflect": extent - 1, "symmetric": extent}.get(mode)
    fits = mirrored is None or max(low, high) <= mirrored
    require(fits, f"{what} must be at most {mirrored} in mode {mode}, but got {max(low, high)}")
    return tuple(_BORDERS[mode](index, extent) for index in range(-low, extent + high))
