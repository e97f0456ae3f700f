"""Grouped convolution as blocks that are dense in themselves.

A group whose output channels do not fill vectors would leave a vector half written.  So neighbouring groups join until
their outputs are a multiple of 8 channels: a block-diagonal matrix, zeros outside the groups.  What is left over at the
end is one smaller block, whose last vector may reach into the lanes beyond the tensor's channels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.memory.storage import lanes_for

_WHOLE = 8


@dataclass(frozen=True)
class ChannelGroup:
    """`count` equal blocks of channels: each maps `channels_in` inputs to `channels_out` outputs.

    `start` and `start_in` are the first output and input channel; `per_block` groups make one block.  With `strides`,
    the elements from one block to the next in data, output and residual, the blocks are no neighbouring channels: all
    have the same ones, in another product each.
    """

    count: int
    start: int
    start_in: int
    channels_in: int
    channels_out: int
    per_block: int
    strides: tuple[int, ...] | None = None

    @property
    def lanes(self) -> int:
        """Output channels of a block with those that fill up its last vector."""
        return self.channels_out if self.has_channels_by_group else lanes_for(self.channels_out)

    @property
    def has_channels_by_group(self) -> bool:
        """Whether there are several groups, each with channels of its own."""
        return self.count > 1 and self.strides is None

    @property
    def channel_sets(self) -> int:
        """Blocks that have channels of their own."""
        return self.count if self.strides is None else 1

    def stride(self, operand: int) -> int:
        """Elements of data (0), output (1) or residual (2) from one block to the next."""
        if self.strides is not None:
            return self.strides[operand]
        return self.channels_in if operand == 0 else self.channels_out

    def taps(self, weights: NDArray[np.int8]) -> NDArray[np.int8]:
        """Weights [OC, KH, KW, IC / groups] of these blocks as [count * channels_out, KH, KW, channels_in]."""
        own = weights[self.start : self.start + self.count * self.channels_out]
        depth = weights.shape[3]
        if depth == self.channels_in:
            return own
        taps = np.zeros((*own.shape[:3], self.channels_in), dtype=own.dtype)
        per_group = self.channels_out // self.per_block
        for channel in range(own.shape[0]):
            first = channel % self.channels_out // per_group * depth
            taps[channel, :, :, first : first + depth] = own[channel]
        return taps


def group_blocks(groups: int, channels_in: int, channels_out: int) -> list[ChannelGroup]:
    """The blocks of a convolution with `groups` groups."""
    depth, width = channels_in // groups, channels_out // groups
    per_block = min(groups, _WHOLE // math.gcd(width, _WHOLE))
    count, rest = divmod(groups, per_block)
    blocks = [ChannelGroup(count, 0, 0, per_block * depth, per_block * width, per_block)]
    if rest:
        done = count * per_block
        blocks.append(ChannelGroup(1, done * width, done * depth, rest * depth, rest * width, rest))
    return blocks
