"""Contractions in matrix tiles of AMX: how pixels and channels are cut, and where that beats dot products.

A product of tiles adds to 16 x 16 sums, each of 16 K groups: 16384 products of bytes.  It takes `tile_product_cycles`
whatever K groups and channels there are, and a cycle less for each row of data less, down to 9.  With two tiles of data
and two of weights, four products need four loads of 16 rows:

  products   4 * 16 cycles
  loads      4 * 16 / 2 cycles, with two loads of 64 bytes a cycle

so that products bound the loop.  One tile of weights with four of data takes five loads for four products, and fetches
the weights of a small plane once: that is for weights that come from afar, as 7 tiles of a row of 7 pixels each take as
long as 4 tiles of a plane with such rows.  In addition to the products, each tile of sums takes its zeros, its way
through memory (16 stores and as many loads) and the bias; and each kind of tile takes a configuration of the registers,
which is loaded and at the end released.  A contraction gets tiles where all of that is less than its dot products take:

  tiles      (16 K tiles + 30) cycles for each tile of sums, where K tiles count those of all taps,
             + 200 for each configuration; but 300 cycles at least in addition to the products of a block of one row
  dots       pixels * vectors * K groups / dot products a cycle, but the latency of a dot product for each K group at
             least, of whole vectors and of narrower ones

and no less than its weights take to come from the second level, where they exceed the first one: that is why dense
layers of one row stay dot products.

On a Xeon of the fourth generation or later, with everything in the first-level cache, bare loops took 16 cycles for a
product, 9.4 for one of 7 rows or 4, 7.5 for a load of 16 whole lines, 31 for one of 16 rows that lie in two lines each
(see `aligned_data`), 15 for a store, 28 for a store whose sums are read again, and 200 for a configuration with its
release.  Four loads and four products together took 71 to 77 cycles, not 64, and more where weights come from the
second level: 1900 to 2000 of 3130 billion products a second.  A block of one row took 300 to 700 cycles in an
EfficientNet-B0: its sums are stored, loaded and requantized, and no others meanwhile.  With 30 cycles around a tile of
sums the model chooses well among 150 drawn layers that were measured in both forms by
`benchmarks/tools/tiles_or_dots.py`: 1.2 % of their time is lost to the slower form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from qdialect.lowering.cost.strategy import ChannelBlock, TiledOperand
from qdialect.lowering.ir.views import Axis
from qdialect.targets.machine import Machine

ROWS = 16
"""Most rows of a tile: pixels of data and sums, K groups of weights."""
LANES = 16
"""Most 32-bit columns of a tile: channels, or K groups of data."""
SUMS, SIDE = 4, 2
"""Most tiles of sums, and most of data and of weights that are multiplied with each other."""
# Fewer rows take no less time.
LEAST_ROWS = 9
# Zeros, stores, loads, the bias, and the wait for the last products.
_AROUND_CYCLES = 30
CONFIGURATION_CYCLES = 200
# From the first load of a block to its results, which no epilogue of other rows hides.
_CHAIN_CYCLES = 300


@dataclass(frozen=True)
class TileBlock:
    """`tiles` of data with `rows` each, at every pixel of `axes`; all strides by operand.

    Rows are the block's `pixels`, and where these do not lie side by side what lies between them: its sums are of no
    use.  Where tiles overlap, they have the same sums.
    """

    axes: tuple[Axis, ...]
    """The loops around the block."""
    tiles: Axis
    """At most as many tiles of data as there are tiles of sums, and the strides from one to the next."""
    rows: Axis
    """The rows of a tile."""
    offsets: tuple[int, ...]
    """Of each operand, to the first pixel."""
    pixels: tuple[Axis, Axis]
    steps: tuple[int, int]
    """Rows from one of the `pixels` to the next, along each axis."""
    step: int
    """Rows from one tile to the next."""

    @property
    def iterations(self) -> int:
        """Of the loops around the block."""
        return math.prod(axis.size for axis in self.axes)

    @property
    def sums(self) -> int:
        """Tiles of sums for one column of channels, all iterations together."""
        return self.iterations * self.tiles.size

    @property
    def product_cycles(self) -> int:
        """Cycles of the products with one tile of weights, all iterations together."""
        return self.sums * max(self.rows.size, LEAST_ROWS)

    @property
    def pixel_count(self) -> int:
        """Pixels of all iterations."""
        return self.iterations * math.prod(axis.size for axis in self.pixels)


def tile_blocks(pixels: Sequence[Axis], *, are_far: bool = False) -> list[TileBlock]:
    """The pixels along `pixels` as blocks of two tiles where there are two, each of at most 16 pixels of the last axis.

    The tiles of a long axis have the same size, but for the last one.  Where fewer tiles than these, or as many of one
    kind, have all of a plane, that is a block, if it has no fewer of them.  But one with fewer tiles must take fewer
    cycles, and so must one whose tiles run across rows, unless the weights `are_far`.
    """
    plane, rows = _plane_block(pixels), _row_blocks(pixels)
    count = sum(block.sums for block in rows) - (len(rows) == 1)
    if plane is None or plane.sums > count:
        return rows
    by_rows = sum(block.product_cycles for block in rows)
    if plane.tiles.size < rows[0].tiles.size and plane.product_cycles >= by_rows:
        return rows
    is_slow = plane.pixels[0].size > 1 and plane.product_cycles >= by_rows
    return rows if is_slow and not are_far else [plane]


def _plane_block(pixels: Sequence[Axis]) -> TileBlock | None:
    """The plane of the two last axes, or else the last one, as one block: tiles run on from a row of it to the next.

    None where that takes too many tiles, or the data of a row does not begin whole pixels behind that of another.
    """
    *outer, last = pixels
    nothing = Axis(1, (0,) * len(last.strides))
    choices = [(outer[:-1], outer[-1], last)] if outer else []
    for around, column, row in [*choices, (outer, nothing, last)]:
        pitch, rest = divmod(column.strides[0], row.strides[0]) if row.strides[0] else (0, 1)
        count = (column.size - 1) * pitch + row.size
        cut = _evenly_cut(count)
        if cut is None or rest or (column.size > 1 and pitch < row.size):
            continue
        tiles, rows, step = cut
        several = Axis(tiles, tuple(step * stride for stride in row.strides))
        axes = tuple(axis for axis in around if axis.size > 1)
        return TileBlock(axes, several, Axis(rows, row.strides), nothing.strides, (column, row), (pitch, 1), step)
    return None


def _evenly_cut(count: int) -> tuple[int, int, int] | None:
    """Tiles that together have `count` rows, as few as go: how many, the rows of each, and from one to the next.

    None where they are too many, or the rows cannot be of the same number from tile to tile.
    """
    tiles = -(-count // ROWS)
    if tiles > SUMS:
        return None
    if tiles == 1:
        return 1, count, count
    fitting = [rows for rows in range(-(-count // tiles), ROWS + 1) if (count - rows) % (tiles - 1) == 0]
    return (tiles, fitting[0], (count - fitting[0]) // (tiles - 1)) if fitting else None


def _row_blocks(pixels: Sequence[Axis]) -> list[TileBlock]:
    """Blocks of tiles along the last axis."""
    *outer, last = pixels
    rows = -(-last.size // -(-last.size // ROWS))
    count, rest = divmod(last.size, rows)
    whole = Axis(count, tuple(rows * stride for stride in last.strides))
    found = _paired([*outer, whole], Axis(rows, last.strides), _moved(last, 0))
    return found + (_paired(outer, Axis(rest, last.strides), _moved(last, count * rows)) if rest else [])


def are_faster(machine: Machine | None, blocks: Sequence[TileBlock], k_groups: Sequence[int], lanes: int) -> bool:
    """Whether tiles take fewer cycles than dot products, for channels of so many `lanes`.

    `k_groups` are the extents of a channel's taps, the last one in K groups.
    """
    if machine is None or not machine.tile_product_cycles:
        return False
    weights = 4 * math.prod(k_groups) * lanes
    least = weights / machine.l2_bandwidth if weights > machine.l1_bytes else 0.0
    products, around = _tile_cycles(machine, blocks, k_groups, lanes)
    return max(products, least) + around < max(_dot_cycles(machine, blocks, k_groups, lanes), least)


def _tile_cycles(
    machine: Machine, blocks: Sequence[TileBlock], k_groups: Sequence[int], lanes: int
) -> tuple[float, float]:
    """Cycles of products of tiles, and of what stands around them."""
    *outer, inner = k_groups
    channels = channel_blocks(lanes, blocks)
    sums = sum(block.sums for block in blocks) * sum(own.tiles * own.vectors for own in channels)
    kinds = [(block.rows.size, own.lanes) for own in channels for block in blocks]
    configurations = 1 + sum(kind != before for before, kind in pairwise(kinds))
    products = sums * machine.tile_product_cycles * math.prod(outer) * -(-inner // LANES)
    chains = sum(block.iterations for block in blocks if block.rows.size == 1) * sum(own.tiles for own in channels)
    around = max(sums * _AROUND_CYCLES, chains * _CHAIN_CYCLES)
    return products, around + configurations * CONFIGURATION_CYCLES


def _dot_cycles(machine: Machine, blocks: Sequence[TileBlock], k_groups: Sequence[int], lanes: int) -> float:
    """Cycles of dot products of whole vectors, and of those of the lanes that are left."""
    pixels, whole = sum(block.pixel_count for block in blocks), lanes // LANES
    parts = [vectors for vectors in (whole, 1 if lanes % LANES else 0) if vectors]
    rate, latency = machine.dot_products, machine.dot_latency
    return math.prod(k_groups) * sum(max(pixels * vectors / rate, latency) for vectors in parts)


def meets_pixels_first(near: tuple[int, int], weights: TiledOperand, data: TiledOperand, results: int) -> bool:
    """Whether a column of channels meets all pixels before the next one does, or a block of pixels all channels.

    `near` are the bytes that stay in the second level and in the first one.  The operand inside is read again for each
    tile of the one outside, and comes from where it stays.  The order is taken that fetches less from behind the second
    level: products of tiles take weights four times as fast as dot products do, so that those larger than this come too
    slowly even in a row.

    Of two that fetch as much from there, pixels are inside where that fetches less than two thirds as much from behind
    the first level, as data and results are in shorter rows than weights.  The bytes of `results`, with those of a
    residual, are fetched and written back; a line of them is so for each of two columns of channels.
    """
    (far_weights, far_data), (near_weights, near_data) = (
        (_fetched(level, weights, data), _fetched(level, data, weights)) for level in near
    )
    by_columns, by_blocks = near_weights + 4 * results, near_data + 2 * results
    return far_weights < far_data or (far_weights == far_data and 3 * by_columns < 2 * by_blocks)


def _fetched(near: int, outside: TiledOperand, inside: TiledOperand) -> int:
    """Bytes from behind a level where `near` bytes stay, as in `Strategy.is_weight_stationary`."""
    return outside.size + inside.size * (outside.tiles if inside.size > near else 1)


def explained(machine: Machine) -> str:
    """The cycles of matrix tiles and of dot products on a machine, as text."""
    vectors, taps = SIDE * SIDE, 4 * LANES
    products, loads = vectors * machine.tile_product_cycles, 2 * SIDE * ROWS / machine.loads
    dots = vectors * ROWS * LANES / machine.dot_products
    parts = f"(products {products:.1f}, loads {loads:.1f})"
    return "\n".join(
        [
            f"matrix tiles, {SIDE * ROWS} rows x {SIDE} vectors, for each {taps} taps",
            f"  {max(products, loads):.1f} cycles, dot products {dots:.1f} {parts}",
            f"  {_AROUND_CYCLES} cycles for each tile of {ROWS} x {LANES} sums in addition, "
            f"{CONFIGURATION_CYCLES} for each configuration",
        ]
    )


def k_tile(k_groups: int) -> int:
    """K groups of a tile, the same for all tiles of a contiguous reduction: as few as as many tiles can have."""
    return -(-k_groups // -(-k_groups // LANES))


def channel_blocks(lanes_total: int, blocks: Sequence[TileBlock]) -> list[ChannelBlock]:
    """Split channels (4, or a multiple of 8) into vectors, one for what is left, and a tail.

    There are two vectors where the `blocks` of pixels leave as many registers.
    """
    most = min(SIDE, *(SUMS // block.tiles.size for block in blocks))
    whole, rest = divmod(lanes_total, most * LANES)
    found = [ChannelBlock(0, whole, most, LANES)] if whole else []
    start, vectors, tail = whole * most * LANES, rest // LANES, rest % LANES
    found += [ChannelBlock(start, 1, 1, LANES)] if vectors else []
    return found + ([ChannelBlock(start + vectors * LANES, 1, 1, tail)] if tail else [])


def _paired(axes: Sequence[Axis], rows: Axis, offsets: tuple[int, ...]) -> list[TileBlock]:
    """Blocks of two tiles along the last of `axes` that has two pixels, and of one for what is left of it."""
    axes = [axis for axis in axes if axis.size > 1]
    if not axes:
        return [_block((), Axis(1, (0,) * len(offsets)), rows, offsets)]
    *outer, last = axes
    pairs, rest = divmod(last.size, SIDE)
    several = Axis(pairs, tuple(SIDE * stride for stride in last.strides))
    found = [_block((*outer, several), Axis(SIDE, last.strides), rows, offsets)]
    if rest:
        behind = tuple(offset + step for offset, step in zip(offsets, _moved(last, SIDE * pairs), strict=True))
        found.append(_block(outer, Axis(1, last.strides), rows, behind))
    return found


def _block(axes: Sequence[Axis], tiles: Axis, rows: Axis, offsets: tuple[int, ...]) -> TileBlock:
    """A block whose rows are its pixels."""
    return TileBlock(tuple(axes), tiles, rows, offsets, (tiles, rows), (rows.size, 1), rows.size)


def _moved(axis: Axis, steps: int) -> tuple[int, ...]:
    return tuple(steps * stride for stride in axis.strides)
