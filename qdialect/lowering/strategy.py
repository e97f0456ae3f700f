"""Tile sizes as a table: op class, shape class and target in, register tile out.

A register tile of R rows and V vectors of channels needs R * V accumulators, V weight vectors and one broadcast row.
AVX-512 has 32 vector registers.
"""

from __future__ import annotations

from dataclasses import dataclass

# Most rows for each number of vectors: R * V + V + 1 registers, of 32.
_ROWS_BY_VECTORS = {4: 6, 3: 9, 2: 14, 1: 24}
_WIDEST = 4
# From this many tiles on, one smaller tile for the rest costs less than smaller tiles all along.
_LONG = 8


@dataclass(frozen=True)
class ChannelBlock:
    """`tiles` neighbouring tiles, each of `vectors` vectors of `lanes` channels, from channel `start` on."""

    start: int
    tiles: int
    vectors: int
    lanes: int

    @property
    def channels(self) -> int:
        """Channels of the block."""
        return self.tiles * self.vectors * self.lanes


def channel_blocks(lanes_total: int) -> list[ChannelBlock]:
    """Split `lanes_total` channels (4, or a multiple of 8) into whole vectors: four at a time, the rest, an 8 tail."""
    if lanes_total < 16:
        return [ChannelBlock(0, 1, 1, lanes_total)]
    vectors, tail = divmod(lanes_total, 16)
    full, rest = divmod(vectors, _WIDEST)
    blocks: list[ChannelBlock] = []
    if full:
        blocks.append(ChannelBlock(0, full, _WIDEST, 16))
    if rest:
        blocks.append(ChannelBlock(full * _WIDEST * 16, 1, rest, 16))
    if tail:
        blocks.append(ChannelBlock(vectors * 16, 1, 1, tail))
    return blocks


def rows_for(extent: int, most: int) -> int:
    """Rows per tile along an axis of `extent`: the most where it is long, else the largest divisor or an even split."""
    if extent >= _LONG * most:
        return most
    divisors = [r for r in range(min(most, extent), most // 2, -1) if extent % r == 0]
    return divisors[0] if divisors else -(-extent // -(-extent // most))


def row_segments(extent: int, vectors: int) -> list[tuple[int, int, int]]:
    """(start, extent, rows) of the parts of an axis: whole tiles, then one smaller tile for what is left."""
    return split(extent, rows_for(extent, _ROWS_BY_VECTORS[vectors]))


def split(extent: int, tile: int) -> list[tuple[int, int, int]]:
    """(start, extent, tile) of the whole tiles of an axis and of the one that is left."""
    whole = extent // tile * tile
    parts = [(0, whole, tile)] if whole else []
    return parts + ([(whole, extent - whole, extent - whole)] if extent > whole else [])


# A depthwise tile is one vector of channels by a few pixels: each needs an accumulator and a widened input vector.
_DEPTHWISE_PIXELS = 8


def depthwise_blocks(lanes_total: int) -> list[ChannelBlock]:
    """Split `lanes_total` channels into vectors of 16 and a tail of 8 or 4."""
    whole, tail = divmod(lanes_total, 16)
    blocks = [ChannelBlock(0, whole, 1, 16)] if whole else []
    return blocks + ([ChannelBlock(whole * 16, 1, 1, tail)] if tail else [])


def depthwise_segments(extent: int) -> list[tuple[int, int, int]]:
    """(start, extent, pixels per tile) of the parts of a row of pixels."""
    return split(extent, rows_for(extent, _DEPTHWISE_PIXELS))
