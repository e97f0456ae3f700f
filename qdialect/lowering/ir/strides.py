"""Strides: of row-major arrays and memrefs, and of the views by which kernels see flat buffers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from qdialect.ir._mlir import ir

# Row-major strides, and those of memrefs.


def row_major(sizes: Sequence[int]) -> tuple[int, ...]:
    """Elements between neighbours along each dimension of an array of these sizes that lies without gaps."""
    return tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))


def static_strides(type_: ir.MemRefType) -> tuple[int, ...] | None:
    """The strides of a memref; None where one is known at run time only, or where its layout is not strided."""
    try:
        strides, _ = type_.get_strides_and_offset()
    except RuntimeError:
        return None
    return None if ir.ShapedType.get_dynamic_stride_or_offset() in strides else tuple(strides)


# Strided views: how a kernel sees a flat buffer.
#
# A view is a list of axes, outermost first, each with a size and a stride in elements; strides may overlap.  So a
# convolution needs no im2col: its windows are a view in which the axes of pixels and of taps walk over the same bytes.


@dataclass(frozen=True)
class Axis:
    """One loop of a kernel: its trip count, and how far each operand moves per iteration.

    `strides[i]` belongs to operand i of whatever the axis is used for (input and output, or input alone).
    """

    size: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class View:
    """A strided window on a flat buffer, in elements."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def covered(self) -> int:
        """Elements from the first to the last of the view, or the number of its elements if that is less."""
        pairs = zip(self.sizes, self.strides, strict=True)
        span = 1 + sum((size - 1) * abs(stride) for size, stride in pairs)
        return min(span, math.prod(self.sizes))


def collapse(axes: Sequence[Axis]) -> list[Axis]:
    """Merge neighbouring axes that every operand walks as one; axes of size 1 vanish.

    ``(a, b)`` is one axis of size a*b where ``stride(a) == size(b) * stride(b)`` for every operand.  So the pixels of a
    1x1 convolution become the rows of one matrix, and a filter as wide as its input becomes one dense row.
    """
    merged: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        if merged and _continues(merged[-1], axis):
            merged[-1] = Axis(merged[-1].size * axis.size, axis.strides)
        else:
            merged.append(axis)
    return merged


def _continues(outer: Axis, inner: Axis) -> bool:
    pairs = zip(outer.strides, inner.strides, strict=True)
    return all(wide == inner.size * narrow for wide, narrow in pairs)
