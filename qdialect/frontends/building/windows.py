"""Describes windows of convolutions and pools, and builds maxima and sums of windows over images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Budget, Shape, require
from qdialect.frontends.building.op_builder import OpBuilder, reduced_numbers
from qdialect.frontends.building.slices import check_indices, framed, gather
from qdialect.ir._mlir import ir


@dataclass(frozen=True)
class Window:
    """One entry of each for every dimension of the image; `output` is the number of windows."""

    kernel: Shape
    strides: Shape
    dilation: Shape
    before: Shape
    after: Shape
    output: Shape

    @property
    def padding(self) -> Shape:
        """Before all dimensions, then after them: top, left, bottom and right of a window over two dimensions."""
        return (*self.before, *self.after)

    def counts(self, size: Shape, counted: Shape = ()) -> NDArray[np.int64]:
        """How many taps of each window lie in data of extents `size`, or among the `counted` cells at their ends."""
        around = counted or (0,) * len(size)
        inside: list[NDArray[np.int64]] = []
        for i, extent in enumerate(size):
            begins = np.arange(self.output[i], dtype=np.int64) * self.strides[i] - self.before[i]
            inside.append(np.minimum(begins + self.kernel[i], extent + around[i]) - np.maximum(begins, -around[i]))
        return reduce(np.multiply.outer, inside)

    @property
    def border(self) -> tuple[Shape, Shape]:
        """The padding of data whose channels come last, before and after each dimension."""
        return (0, *self.before, 0), (0, *self.after, 0)

    @property
    def kernel_extent(self) -> Shape:
        """The extent of the dilated kernel."""
        return effective_kernel_extent(self.kernel, self.dilation)

    def two_dimensional(self) -> Window:
        """The same over an image of height 1 where there is one dimension, over each image where there are three."""
        if len(self.kernel) == 2:
            return self
        if len(self.kernel) == 3:
            return Window(*(field[1:] for field in self._fields))
        ones, zeros = (1,), (0,)
        return Window(
            ones + self.kernel,
            ones + self.strides,
            ones + self.dilation,
            zeros + self.before,
            zeros + self.after,
            ones + self.output,
        )

    def along_depth(self) -> Window:
        """Of a window over three dimensions what it is along the first, over images whose width is all of a slice."""
        neutral = ((1,), (1,), (1,), (0,), (0,), (math.prod(self.output[1:]),))
        return Window(*(field[:1] + other for field, other in zip(self._fields, neutral, strict=True)))

    @property
    def _fields(self) -> tuple[Shape, ...]:
        return self.kernel, self.strides, self.dilation, self.before, self.after, self.output


def effective_kernel_extent(kernel: Shape, dilation: Shape) -> Shape:
    """The extent of a dilated kernel."""
    return tuple((extent - 1) * rate + 1 for extent, rate in zip(kernel, dilation, strict=True))


# Maxima and sums of windows over images, as ops: along one dimension after the other.
#
# A window's taps along a dimension are gathered side by side and reduced, for dilated and padded windows alike.

Positions = tuple[tuple[int, ...], ...]
"""Where each tap of each window stands along a dimension, perhaps outside of the image."""


@dataclass(frozen=True)
class Pool:
    """Windows whose taps stand at `positions` of an image of extents `size`."""

    size: Shape
    positions: tuple[Positions, ...]

    @classmethod
    def of(cls, window: Window, size: Shape, budget: Budget) -> Self:
        """Of an image of extents `size`; raises `UnsupportedError` where there are too many taps to be listed."""
        positions: list[Positions] = []
        for i, kernel in enumerate(window.kernel):
            check_indices(window.output[i] * kernel, budget)
            starts = (index * window.strides[i] - window.before[i] for index in range(window.output[i]))
            positions.append(
                tuple(tuple(start + tap * window.dilation[i] for tap in range(kernel)) for start in starts)
            )
        return cls(size, tuple(positions))

    def check(self) -> None:
        """Raise `UnsupportedError` where a window lies outside of the image."""
        for extent, windows in zip(self.size, self.positions, strict=True):
            holds = all(any(0 <= tap < extent for tap in taps) for taps in windows)
            require(holds, f"every window must have an element of {list(self.size)}")

    def maxima(self, emitter: OpBuilder, value: ir.Value) -> ir.Value:
        """The largest numbers of the windows over [N, ..., C]; NaN where there is one."""
        for axis, (extent, windows) in enumerate(zip(self.size, self.positions, strict=True), start=1):
            inside = [_inside(taps, extent) for taps in windows]
            value = _folded(emitter, value, axis, inside, "max")
        return value

    def sums(self, emitter: OpBuilder, value: ir.Value) -> ir.Value:
        """The sums of the windows over [N, ..., C]; elements outside of the image count as 0."""
        for axis, (extent, windows) in enumerate(zip(self.size, self.positions, strict=True), start=1):
            low = max(0, -min(min(taps) for taps in windows))
            high = max(0, max(max(taps) for taps in windows) + 1 - extent)
            before, after = ([count if i == axis else 0 for i in range(len(self.size) + 2)] for count in (low, high))
            padded = framed(emitter, value, before, after)
            value = _folded(emitter, padded, axis, [[tap + low for tap in taps] for taps in windows], "sum")
        return value


def _inside(taps: Sequence[int], extent: int) -> list[int]:
    """Taps outside of the image as another of the window: it counts twice, which no maximum notices."""
    known = next(tap for tap in taps if 0 <= tap < extent)
    return [tap if 0 <= tap < extent else known for tap in taps]


def _folded(emitter: OpBuilder, value: ir.Value, axis: int, windows: Sequence[Sequence[int]], kind: str) -> ir.Value:
    taps = len(windows[0])
    gathered = gather(emitter, value, axis, [tap for window in windows for tap in window])
    if taps == 1:
        return gathered
    shape = shape_of(value.type)
    split = emitter.reshape(gathered, (*shape[:axis], len(windows), taps, *shape[axis + 1 :]))
    return reduced_numbers(emitter, kind, split, (axis + 1,), keep_dims=False)
