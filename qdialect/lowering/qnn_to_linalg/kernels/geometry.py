"""The geometry of a contraction: its window, segments of pixels, groups of channels, and the axes it sums over."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.cost.strategy import groups_of
from qdialect.lowering.ir.views import Axis
from qdialect.lowering.qnn_to_linalg.program.program import Storage, lanes_for

# The geometry of a sliding window over a stored tensor.


@dataclass(frozen=True)
class Grid:
    """Which pixels of a stored tensor a kernel writes or adds: from `start` on every `steps`, along H and W."""

    start: tuple[int, int] = (0, 0)
    steps: tuple[int, int] = (1, 1)

    def origin(self, storage: Storage) -> int:
        """Offset of the first pixel."""
        return storage.origin + self.start[0] * storage.strides[1] + self.start[1] * storage.strides[2]

    def pixel_strides(self, storage: Storage) -> tuple[int, int, int]:
        """Elements from one pixel to the next, along N, H and W."""
        image, row, column, _ = storage.strides
        return image, self.steps[0] * row, self.steps[1] * column


EVERY_PIXEL = Grid()


@dataclass(frozen=True)
class Window:
    """Output pixels and kernel taps of a convolution or a pool, as steps over the stored input."""

    images: int
    output: tuple[int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    """Rows above and columns left of the first pixel; negative where the first window starts inside."""

    def start(self, data: Storage) -> int:
        """Offset of the first tap of the first window; the pads of `data` must be large enough."""
        return data.origin - self.padding[0] * data.strides[1] - self.padding[1] * data.strides[2]

    def pixel_strides(self, data: Storage) -> tuple[int, int, int]:
        """Input elements from one output pixel to the next, along N, H and W."""
        image, row, column, _ = data.strides
        return image, self.strides[0] * row, self.strides[1] * column

    def tap_strides(self, data: Storage) -> tuple[int, int]:
        """Input elements from one tap to the next, along H and W."""
        return self.dilation[0] * data.strides[1], self.dilation[1] * data.strides[2]

    @property
    def pixels(self) -> tuple[int, int, int]:
        """Output extents along N, H and W."""
        return self.images, *self.output


# Parts of a kernel's pixels whose extents are multiples of their tiles.

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
    def loops(self) -> tuple[str, ...]:
        return tuple(f"m{i}" for i in range(len(self.pixels)))

    @property
    def sizes(self) -> tuple[int, ...]:
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


# Grouped convolution as blocks that are dense in themselves.
#
# A group whose output channels do not fill vectors would leave a vector half written.  So neighbouring groups join
# until their outputs are a multiple of 8 channels: a block-diagonal matrix, zeros outside the groups.  What is left
# over at the end is one smaller block, whose last vector may reach into the lanes beyond the tensor's channels.

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
    return [
        ChannelGroup(count, first * per_block * width, first * per_block * depth, own * depth, own * width, own)
        for first, count, own in groups_of(per_block, groups)
    ]


# The axes that a channel of a contraction is summed over.


@dataclass(frozen=True)
class ReductionAxes:
    """The taps of one channel group: extents of the outer axes and, last, of the contiguous reduction."""

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    """Of the outer axes."""
    lane_padding: int
    """Padding lanes of each tap, after its channels; their weights are zero."""
    present: NDArray[np.int8]
    """[channels, KH, KW, IC]: one where a tap belongs to the channel, else zero."""
    k_group: int = 4
    """Taps of a K group (kr), which fill 32 bits."""
    padding: int = 0
    """Taps after the contiguous reduction that are read and multiplied by 0, in addition to those of the K group."""

    def ordered(self, taps: NDArray[np.int8]) -> NDArray[np.int8]:
        """Taps [channels, KH, KW, IC] as [channels, extents...]."""
        spread = np.pad(taps, ((0, 0), (0, 0), (0, 0), (0, self.lane_padding))) if self.lane_padding else taps
        ordered = spread.reshape(taps.shape[0], *self.extents)
        return np.pad(ordered, [*[(0, 0)] * (ordered.ndim - 1), (0, self.padding)]) if self.padding else ordered

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extents of the outer axes."""
        return self.extents[:-1]

    @property
    def taps(self) -> int:
        return math.prod(self.extents)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights of a channel."""
        return self.taps if self.k_group > 1 else 4 * self.taps

    @property
    def k_groups(self) -> int:
        """K groups of the contiguous reduction, the last one padded."""
        return -(-(self.extents[-1] + self.padding) // self.k_group)

    @property
    def outer(self) -> tuple[str, ...]:
        return tuple(f"k{i}" for i in range(len(self.sizes)))

    @property
    def loops(self) -> tuple[str, ...]:
        return (*self.outer, "kk", "k4")

    @property
    def tiles(self) -> tuple[int, ...]:
        """Tile sizes of the reduction loops: one K group at a time."""
        return (1,) * (len(self.sizes) + 1) + (0,)
