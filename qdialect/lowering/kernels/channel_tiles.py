"""The channels of one micro-kernel, and arrays of channels in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernels.groups import ChannelGroup
from qdialect.lowering.operands.packing import T, pack_k_groups
from qdialect.lowering.tiling.strategy import ChannelBlock


@dataclass(frozen=True)
class ChannelTiles:
    """One block of the channels of one channel group, as [group, tile, vector, lane].

    The first axis exists only where there are several groups.
    """

    group: ChannelGroup
    block: ChannelBlock
    channels: int
    """Output channels of the op."""

    @property
    def has_group_axis(self) -> bool:
        """Whether the micro-kernel has a loop over groups."""
        return self.group.count > 1

    @property
    def has_channels_by_group(self) -> bool:
        """Whether each group of that loop has channels of its own."""
        return self.group.has_channels_by_group

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extents of [group, tile, vector, lane]."""
        return (*([self.group.count] if self.has_group_axis else []), *self._tile_sizes)

    @property
    def indices(self) -> NDArray[np.int64]:
        """The output channel of each [group, channel of the block]; one row where all groups share their channels."""
        starts = self.group.start + np.arange(self.group.channel_sets) * self.group.channels_out
        return starts[:, None] + (self.block.start + np.arange(self.block.channels))[None, :]

    def per_channel(self, values: NDArray[Any]) -> NDArray[Any]:
        """The entries of these channels, [group, tile, vector, lane], of an array with one entry or one a channel.

        A lane beyond the last channel repeats it, for that lane is never read.
        """
        last = self.channels - 1
        own = np.broadcast_to(values, (self.channels,))[np.minimum(self.indices, last)]
        return own.reshape(self.sizes if self.has_channels_by_group else self._tile_sizes)

    def packed(self, taps: NDArray[T], k_group: int = 4) -> NDArray[T]:
        """Taps [channels of the groups, K..., k] as [group, tile, K..., k / g, vector, lane, g], g taps a K group.

        Lanes beyond the last channel are zero.
        """
        chosen = _rows(taps, (self.indices - self.group.start).reshape(-1))
        by_group = chosen.reshape(self.group.channel_sets, self.block.channels, *taps.shape[1:])
        packed = [pack_k_groups(part, self.block.lanes, self.block.vectors, k_group) for part in by_group]
        return np.stack(packed) if self.has_group_axis else packed[0]

    @property
    def _tile_sizes(self) -> tuple[int, int, int]:
        return self.block.tiles, self.block.vectors, self.block.lanes


def _rows(taps: NDArray[T], rows: NDArray[np.int64]) -> NDArray[T]:
    """The rows of `taps`, zeros beyond the last; where they follow each other they are not copied."""
    known, first, last = taps.shape[0], int(rows[0]), int(rows[-1])
    if last < known and np.array_equal(rows, np.arange(first, last + 1)):
        return taps[first : last + 1]
    chosen = taps[np.minimum(rows, known - 1)]
    chosen[rows >= known] = 0
    return chosen
