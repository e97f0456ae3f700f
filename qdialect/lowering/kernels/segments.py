"""Parts of a kernel's pixels whose extent is a multiple of their tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qdialect.lowering.views import Axis


@dataclass(frozen=True)
class Segment:
    """Pixel axes of one nest, how far each operand is into its buffer at their start, and pixels per tile."""

    pixels: Sequence[Axis]
    offsets: Sequence[int]
    rows: int

    @property
    def loops(self) -> tuple[str, ...]:
        """Names of the pixel loops."""
        return tuple(f"m{i}" for i in range(len(self.pixels)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extents of the pixel loops."""
        return tuple(axis.size for axis in self.pixels)

    def strides(self, operand: int) -> tuple[int, ...]:
        """Elements of an operand from one pixel to the next."""
        return tuple(axis.strides[operand] for axis in self.pixels)


def segments(axes: Sequence[Axis], split: Callable[[int], Sequence[tuple[int, int, int]]]) -> list[Segment]:
    """Cut the innermost axis by `split`, which gives (start, extent, tile) of each part."""
    *outer, last = axes
    return [
        Segment([*outer, Axis(extent, last.strides)], [start * stride for stride in last.strides], rows)
        for start, extent, rows in split(last.size)
    ]
