"""Parts of a kernel's pixels whose extents are multiples of their tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from qdialect.lowering.memory.views import Axis

Part = tuple[int, int, int]
"""Start and extent of a part of an axis, and pixels per tile."""


@dataclass(frozen=True)
class Segment:
    """Pixel axes of one micro-kernel, and how far each operand is into its buffer at their start."""

    pixels: Sequence[Axis]
    offsets: Sequence[int]
    tiles: tuple[int, ...]
    """Pixels per tile, along each axis."""

    @property
    def rows(self) -> int:
        """Pixels per tile along the innermost axis."""
        return self.tiles[-1]

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


def segments(axes: Sequence[Axis], split: Callable[[int], Sequence[Part]]) -> list[Segment]:
    """The parts that `split` makes of the innermost axis, with all of the others, one pixel of each at a time."""
    *outer, last = axes
    return tile_segments(axes, [*([(0, axis.size, 1)] for axis in outer), split(last.size)])


def tile_segments(axes: Sequence[Axis], parts: Sequence[Sequence[Part]]) -> list[Segment]:
    """Every combination of the parts of each axis."""
    return [_segment(axes, chosen) for chosen in product(*parts)]


def _segment(axes: Sequence[Axis], parts: Sequence[Part]) -> Segment:
    pairs = list(zip(axes, parts, strict=True))
    pixels = [Axis(extent, axis.strides) for axis, (_, extent, _) in pairs]
    operands = range(len(axes[0].strides))
    offsets = [sum(start * axis.strides[operand] for axis, (start, _, _) in pairs) for operand in operands]
    return Segment(pixels, offsets, tuple(tile for _, _, tile in parts))
