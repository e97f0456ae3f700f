"""What a channel of a contraction is summed up over."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ReductionAxes:
    """The taps of one channel group: extents of the outer axes and, last, of the contiguous reduction."""

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    """Of the outer axes."""
    spare: int
    """Lanes of each tap beyond its channels; their weights are zero."""
    present: NDArray[np.int8]
    """[channels, KH, KW, IC]: one where a tap belongs to the channel, else zero."""
    k_group: int = 4
    """Taps of a K group: what fills 32 bits."""
    padding: int = 0
    """Taps behind the contiguous reduction that are read and multiplied by 0, beside those that fill a K group."""
    gathered: int = 0
    """Taps at the end of the contiguous reduction that are products of their own, see `gathered_taps`."""

    def ordered(self, taps: NDArray[np.int8]) -> NDArray[np.int8]:
        """Taps [channels, KH, KW, IC] as [channels, extents...]."""
        spread = np.pad(taps, ((0, 0), (0, 0), (0, 0), (0, self.spare))) if self.spare else taps
        ordered = spread.reshape(taps.shape[0], *self.extents)[..., : self.extents[-1] - self.gathered]
        return np.pad(ordered, [*[(0, 0)] * (ordered.ndim - 1), (0, self.padding)]) if self.padding else ordered

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extents of the outer axes."""
        return self.extents[:-1]

    @property
    def taps(self) -> int:
        """Taps of a channel."""
        return math.prod(self.extents)

    @property
    def k_groups(self) -> int:
        """K groups of the contiguous reduction, the last one padded."""
        return -(-(self.extents[-1] - self.gathered + self.padding) // self.k_group)

    @property
    def outer(self) -> tuple[str, ...]:
        """Loops over the outer axes."""
        return tuple(f"k{i}" for i in range(len(self.sizes)))

    @property
    def loops(self) -> tuple[str, ...]:
        """All reduction loops."""
        return (*self.outer, "kk", "k4")

    @property
    def tiles(self) -> tuple[int, ...]:
        """Tile sizes of the reduction loops: one K group at a time."""
        return (1,) * (len(self.sizes) + 1) + (0,)
