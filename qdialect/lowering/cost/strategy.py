"""Tile sizes: target in, tiles by op and shape out.

Those of contractions are computed from the target's machine, see `register_tiles`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from qdialect.lowering.cost.register_tiles import Layout, TileModel, Tiles, tiles_of
from qdialect.lowering.instructions.instruction_set import instruction_set_of
from qdialect.targets import Target
from qdialect.targets.machine import Machine

# From this many tiles on, one smaller tile for the rest costs less than smaller tiles all along.
_LONG, _ROWS_FOR_WORDS = 8, 4
# Of 32 registers of 16 lanes.
_DEPTHWISE_PIXELS, _WIDE, _FUNCTION_VECTORS = 8, 16, 8
# A row has four accumulators; the other registers hold the four vectors of an interleaved row, and their weights.
_MAX_INTERLEAVED_ROWS, _OTHER_REGISTERS = 3, 8

_STEP = 512
"""Terms of a step of f32 products at most: sums are written and read again after as many multiply-adds."""

LANES = 64
"""Bytes of the widest vector of any target."""


@dataclass(frozen=True)
class LaneBlock:
    """`tiles` vectors of bytes that `pixels` neighbours share: `lanes` lanes of each, from lane `start` on."""

    start: int
    tiles: int
    pixels: int
    lanes: int


@dataclass(frozen=True)
class ChannelBlock:
    """`tiles` neighbouring tiles, each of `vectors` vectors of `lanes` channels, from channel `start` on.

    `rows` is the most that a register tile has.
    """

    start: int
    tiles: int
    vectors: int
    lanes: int
    rows: int = 1
    layout: Layout = Layout.BYTES

    @property
    def channels(self) -> int:
        return self.tiles * self.vectors * self.lanes

    def cut(self, vectors: int) -> list[ChannelBlock]:
        """Blocks of one tile each, of so many vectors or of those that are left."""
        parts = [part for part in split(self.tiles * self.vectors, vectors) if part[1]]
        starts = [(start + i, tile) for start, size, tile in parts for i in range(0, size, tile)]
        return [replace(self, start=self.start + at * self.lanes, tiles=1, vectors=tile) for at, tile in starts]


@dataclass(frozen=True)
class TiledOperand:
    """An operand of a contraction: its bytes, and the tiles that it is cut into."""

    size: int
    tiles: int


@dataclass(frozen=True)
class RequantizerForms:
    """Forms of a requantization that a target is fast at, other than products, sums and shifts of 32 bits."""

    multiply_adds: bool = False
    """Fused multiply-adds of float32 numbers."""
    f32_sums: bool = False
    """Sums of two quantized values by multiply-adds: one instruction rounds and converts them, too."""


NO_FORMS = RequantizerForms()
"""None of them."""


@dataclass(frozen=True)
class DepthwiseTiles:
    """The register tiles of depthwise convolutions."""

    pixels: int = 6
    """By taps: most pixels of a tile, each an accumulator and a widened input vector of channels."""
    interleaved_rows: int = 0
    """By dot products: most rows of a tile, each four accumulators; 0 where the target has none."""
    has_words: bool = False
    """By taps: whether weights are words, so that `vpmaddwd` multiplies them and not `vpmulld`."""

    def segments(self, extent: int) -> list[tuple[int, int, int]]:
        """(start, extent, pixels per tile) of the parts of a row of pixels."""
        return split(extent, rows_for(extent, self.pixels))

    def rows(self, extent: int) -> list[tuple[int, int, int]]:
        """(start, extent, rows per tile) of the parts of a column of pixels."""
        return split(extent, min(extent, self.interleaved_rows))


@dataclass(frozen=True)
class MapTiles:
    """How many numbers a tile of element-wise code has, by what is computed of them."""

    functions: int = 16
    """Float functions: several vectors, whose chains of operations overlap."""
    row_functions: int = 16
    """Those that take a number of their row, too."""
    tables: int = 16
    """Entries of tables of 256 numbers of 32 bits."""
    products: int = 16
    """Products of f32 numbers: columns of a register tile of eight rows."""


@dataclass(frozen=True)
class Strategy:
    """How kernels are cut for one kind of target; fields without another subject are of contractions."""

    tiles: Sequence[Tiles]
    """The first that holds for a reduction."""
    depthwise: DepthwiseTiles = DepthwiseTiles()
    maps: MapTiles = MapTiles()
    forms: RequantizerForms = NO_FORMS
    lanes: int = 16
    """Channels of a vector."""
    sum_rows: int = 0
    """Sums of windows by dot products: most rows, each a vector of sums; 0 where the target has none."""
    multiplies_words: bool = False
    """Whether the target's dot products are of words, so that bytes are widened."""
    near_bytes: int = 128 << 10
    """Bytes that stay in the second level while other data passes through."""
    streamed_bytes: int = 512 << 10
    """Of weights that each tile of pixels reads anew as fast as it takes them."""
    others: tuple[Layout, ...] = ()
    """F32 numbers, and layouts that take fewer cycles at times; stored words where products are of words, and pairs
    (see `qdialect.lowering.cost.register_tiles`) unless the target does better or has none."""
    multiplies_signed: bool = False
    """Whether the target multiplies signed by signed bytes, so that users' arrays are read as they are."""
    multiplies_pairs: bool = False
    """Whether the target multiplies pairs of bf16 numbers."""
    gathers_bytes: bool = False
    """Whether permutes put together bytes that lie apart, and products are not of matrix tiles."""
    permuted: tuple[str, ...] = ()
    """The types of elements that permutes pick from two of the widest vectors, for copies."""
    converts_halves: bool = False
    """Whether one instruction converts float16 numbers to float32."""
    matrix_machine: Machine | None = None
    """The core whose matrix tiles multiply; None where the target has none."""
    model: TileModel | None = field(default=None, compare=False)
    """The model that chooses `tiles`; None where the target is vector code alone."""
    fixed_tile: tuple[int, int] | None = None
    """Rows and vectors of the widest tile, in place of those that are chosen."""
    fixed_pairs: bool = False
    """Whether products are summed in pairs whatever that costs."""
    fixed_weight_stationary: bool | None = None
    """The result of `is_weight_stationary`, in place of the computed one."""

    def takes_pairs(self, lanes_total: int, taps: int, rows: int, remainder: float) -> bool:
        """Whether products of constant weights are summed in pairs, by the cycles that this and words take.

        `remainder` is the share of K groups that are multiplied once more.
        """
        if self.model is None or Layout.PAIRS not in self.others or self.fixed_pairs:
            return self.fixed_pairs
        words, pairs = (self._chosen(lanes_total, taps, layout).cost for layout in (Layout.WORDS, Layout.PAIRS))
        widening = 0.0 if self.are_words(rows) else self.model.widening(rows)
        return pairs * (1 + remainder) <= words + widening

    def takes_stored_words(
        self, lanes_total: int, taps: int, rows: int, copied: float, remainder: float | None
    ) -> bool:
        """Whether words of the data are stored before they are multiplied, by the cycles of this and of the others.

        `copied` is the vectors of words that are stored for each vector of sums and K group, `remainder` the share of
        K groups that pairs multiply once more; None where there are too many.
        """
        if Layout.STORED_WORDS not in self.others or not self.are_words(rows):
            return False
        others = [self._chosen(lanes_total, taps, Layout.WORDS).cost]
        if Layout.PAIRS in self.others and remainder is not None:
            others.append(self._chosen(lanes_total, taps, Layout.PAIRS).cost * (1 + remainder))
        return self._chosen(lanes_total, taps, Layout.STORED_WORDS).cost + copied < min(others)

    def model_of(self, layout: Layout, pixels: int | None = None) -> TileModel | None:
        """The model that chooses tiles of `layout` for so many rows; None where the target is vector code alone."""
        if self.model is None:
            return None
        model = replace(self.model, layout=layout) if layout in self.others else self.model
        # A tile of few rows is wide, so that none waits for the latency of another.
        return replace(model, pixels=pixels) if pixels and model.takes_rows(pixels) else model

    def _chosen(
        self, lanes_total: int, taps: int, layout: Layout, parameters: int = 0, pixels: int | None = None
    ) -> Tiles:
        """The tiles of the first choice that holds for channels of `taps` taps each."""
        model = self.model_of(layout, pixels)
        if self.fixed_tile and model:
            return model.with_narrower(*self.fixed_tile)
        tiles = tiles_of(model) if model and model != self.model else self.tiles
        size = lanes_total * taps
        return next(one for one in tiles if taps <= one.taps and size < one.size and parameters <= one.parameters)

    def are_words(self, rows: int) -> bool:
        """Whether constant weights that meet `rows` rows are stored as words: twice the bytes, and nothing to widen."""
        return self.multiplies_words and rows >= _ROWS_FOR_WORDS

    def is_weight_stationary(self, weights: TiledOperand, data: TiledOperand) -> bool:
        """Whether the loop order is weight-stationary: a tile of channels meets all pixels before the next tile.

        The inner operand is read once for each tile of the outer one, the outer operand once altogether.  What does not
        stay near comes from afar each time, so that with W bytes of weights and D of data, T_w and T_d tiles of them,
        an order fetches

          all channels for each tile of pixels   D + W (T_d if W > streamed, else 1)
          all pixels for each tile of channels   W + D (T_w if D > near, else 1)

        The second is taken where it fetches less.
        """
        if self.fixed_weight_stationary is not None:
            return self.fixed_weight_stationary
        channels_inside = data.size + weights.size * (data.tiles if weights.size > self.streamed_bytes else 1)
        pixels_inside = weights.size + data.size * (weights.tiles if data.size > self.near_bytes else 1)
        return pixels_inside < channels_inside

    def channel_blocks(
        self,
        lanes_total: int,
        depth: int,
        layout: Layout = Layout.BYTES,
        parameters: int = 0,
        pixels: int | None = None,
    ) -> list[ChannelBlock]:
        """Split `lanes_total` channels (4, or a multiple of 8) into whole vectors: as many a tile as go, an 8 tail.

        `depth` is the bytes of each channel's taps, `parameters` how many numbers of each channel the epilogue reads.
        """
        rows = self._chosen(lanes_total, depth, layout, parameters, pixels).rows
        lanes = self.lanes
        if lanes_total < lanes:
            return [ChannelBlock(0, 1, 1, lanes_total, rows[1], layout)]
        widest = max(rows)
        vectors, tail = divmod(lanes_total, lanes)
        full, rest = divmod(vectors, widest)
        blocks: list[ChannelBlock] = []
        if full:
            blocks.append(ChannelBlock(0, full, widest, lanes, rows[widest], layout))
        if rest:
            blocks.append(ChannelBlock(full * widest * lanes, 1, rest, lanes, rows[rest], layout))
        if tail:
            blocks.append(ChannelBlock(vectors * lanes, 1, 1, tail, rows[1], layout))
        return blocks

    def step_of(self, block: ChannelBlock, taps: int, rows: int) -> int | None:
        """Taps of f32 numbers whose weights all rows meet before those of the next; None where they meet all of them.

        That is where one register tile has all rows, and where a tile of channels takes little of the second level.
        """
        if self.model is None or block.layout is not Layout.FLOATS or rows <= block.rows:
            return None
        if 4 * taps * block.vectors * block.lanes <= self.model.machine.l2_bytes // 8:
            return None
        steps = -(-taps // _STEP)
        return -(-taps // (steps * LANES)) * LANES

    def least_rows(self, block: ChannelBlock) -> int:
        """The least of `rows_for` for tiles of `block`, more than half of the most.

        Words are twice the bytes of weights for as many products: short tiles wait for them.  Dot products of bytes are
        added up one after the other: tiles with fewer sums than are in flight wait for the first one.
        """
        if block.layout is Layout.STORED_WORDS and block.layout in self.others:
            return -(-3 * block.rows // 4)
        in_flight = self.model.sums_in_flight if self.model else 0
        return min(block.rows, max(block.rows // 2 + 1, -(-in_flight // block.vectors)))


# Vector code alone: 16 registers of 8 lanes, so that a vector fills two.
_GENERIC = Strategy((Tiles({1: 6}),))


def strategy_of(target: Target) -> Strategy:
    """The strategy for `target`."""
    model, instructions = tile_model(target), instruction_set_of(target)
    if model is None or instructions is None:
        return _GENERIC
    registers, is_wide = target.machine.vector_registers, instructions.lanes == _WIDE
    has_layouts = {
        Layout.STORED_WORDS: instructions.multiplies_words,
        Layout.PAIRS: bool(instructions.pair_dots),
        Layout.FLOATS: True,
    }
    # A tile of functions of a row: the row's number takes the register of a constant, and tiles of fewer vectors load
    # it again instead.  That pays where loads are plenty.  On Zen 4, which loads one vector a cycle, eight vectors of a
    # softmax take 0.97 of the time of four.
    row_vectors = _FUNCTION_VECTORS if target.machine.loads == 1 else _FUNCTION_VECTORS // 2
    # All that byte permutes look up at once; else two vectors or four, as far as there are registers for them.
    some_lanes = 2 * _WIDE if instructions.lanes > _WIDE // 4 else _WIDE
    near = target.machine.l2_bytes // 2
    table_lanes = LANES if instructions.has_byte_permutes else some_lanes
    return Strategy(
        tiles_of(model),
        DepthwiseTiles(
            # A vector of 16 sums or inputs takes as many registers as the target's are shorter.
            _DEPTHWISE_PIXELS if is_wide else _DEPTHWISE_PIXELS - 2,
            min(_MAX_INTERLEAVED_ROWS, (registers - _OTHER_REGISTERS) // 4),
            not is_wide,
        ),
        MapTiles(
            _FUNCTION_VECTORS * _WIDE if is_wide else _WIDE,
            row_vectors * _WIDE if is_wide else _WIDE,
            table_lanes,
            # Two vectors for each row: a row's number is then loaded once for both.
            2 * _WIDE if is_wide else _WIDE,
        ),
        RequantizerForms("fma" in target.cpu_features, instructions.has_zmm),
        instructions.lanes,
        sum_rows=registers // 2,
        multiplies_words=instructions.multiplies_words,
        near_bytes=near,
        # Weights are read in a row, and a fast third level delivers them as tall tiles take them. Those that are larger
        # than twice the second one share it with what other cores read, and may come from memory.
        streamed_bytes=near if target.machine.is_third_level_slow else 4 * near,
        others=tuple(layout for layout, has in has_layouts.items() if has),
        multiplies_signed=bool(instructions.signed_dots),
        multiplies_pairs=bool(instructions.bf16_dots),
        gathers_bytes=instructions.has_byte_permutes and not instructions.has_tiles,
        permuted=instructions.permuted,
        converts_halves="f16c" in target.code_features,
        matrix_machine=target.machine if instructions.has_tiles else None,
        model=model,
    )


def tile_model(target: Target) -> TileModel | None:
    """The model that chooses the register tiles of `target`; None where it is vector code alone."""
    instructions = instruction_set_of(target)
    if instructions is None:
        return None
    layout = Layout.WORDS if instructions.multiplies_words else Layout.BYTES
    return TileModel(target.machine, instructions.lanes, layout)


def depthwise_blocks(lanes_total: int) -> list[ChannelBlock]:
    """Split `lanes_total` channels into vectors of 16 and a tail of 8 or 4."""
    whole, tail = divmod(lanes_total, 16)
    blocks = [ChannelBlock(0, whole, 1, 16)] if whole else []
    return blocks + ([ChannelBlock(whole * 16, 1, 1, tail)] if tail else [])


def lane_blocks(lanes_total: int, width: int, *, merge: bool, vector: int = LANES) -> list[LaneBlock]:
    """Split the lanes of a row of `width` pixels into vectors of `vector` bytes; none where they fill no vector.

    Where the pixels of a row `merge`, their lanes lie side by side and fill vectors together.  Else what is left of a
    pixel is cut into powers of two, of as many pixels as fill a vector, or the last vector reaches back.
    """
    pixels = vector // math.gcd(lanes_total, vector)
    if merge and pixels <= width:
        return [LaneBlock(0, pixels * lanes_total // vector, pixels, lanes_total)]
    tiles, rest = divmod(lanes_total, vector)
    whole = [LaneBlock(0, tiles, 1, tiles * vector)] if tiles else []
    powers = [power for power in (32, 16, 8, 4) if rest & power]
    if (whole and rest > vector // 2) or any(vector // power > width for power in powers):
        return [*whole, LaneBlock(lanes_total - vector, 1, 1, vector)] if whole else []
    starts = [lanes_total - (rest & (2 * power - 1)) for power in powers]
    return whole + [LaneBlock(start, 1, vector // power, power) for start, power in zip(starts, powers, strict=True)]


def rows_for(extent: int, maximum: int, least: int | None = None) -> int:
    """Rows per tile along an axis of `extent`: the most where it is long, else the largest divisor or an even split.

    A divisor is at least `least`, by default more than half of `maximum`.
    """
    if extent >= _LONG * maximum:
        return maximum
    below = maximum // 2 if least is None else least - 1
    divisors = [r for r in range(min(maximum, extent), below, -1) if extent % r == 0]
    return divisors[0] if divisors else -(-extent // -(-extent // maximum))


def split(extent: int, tile: int) -> list[tuple[int, int, int]]:
    """(start, extent, tile) of the whole tiles of an axis and of the one that is left."""
    whole = extent // tile * tile
    parts = [(0, whole, tile)] if whole else []
    return parts + ([(whole, extent - whole, extent - whole)] if extent > whole else [])


def groups_of(size: int, count: int) -> list[tuple[int, int, int]]:
    """(first group, groups, size) of the whole groups of `size` of so many things, and of the one that is left."""
    return [(start // size, extent // own, own) for start, extent, own in split(count, size)]


def lane_parts(extent: int, width: int, lanes: int) -> list[tuple[int, int, int]]:
    """(start, extent, lanes) of the parts of a row: tiles of `width` lanes, of the whole vectors left, and the rest.

    A tile that is more than a vector of `lanes` and no multiple of it would be taken apart, lane by lane.
    """
    whole = extent // width * width
    vectors = (extent - whole) // lanes * lanes
    parts = [(0, whole, width), (whole, vectors, vectors), (whole + vectors, extent - whole - vectors, lanes)]
    return [(start, size, min(size, tile)) for start, size, tile in parts if size]


def row_tiles(extents: Sequence[int], maximum: int, least: int | None = None) -> list[list[tuple[int, int, int]]]:
    """(start, extent, rows) of the parts of each axis: whole tiles, then one smaller tile for what is left.

    A tile of up to `maximum` rows has one of every axis but the last; of a short last axis it has all, and several
    of the one before.  `least` is that of `rows_for` along the last axis.
    """
    *outer, last = extents
    if outer and 2 * last <= maximum:
        *outer, several = outer
        parts = [split(several, rows_for(several, maximum // last)), [(0, last, last)]]
    else:
        parts = [_row_parts(last, maximum, least)]
    return [[(0, extent, 1)] for extent in outer] + parts


def _row_parts(extent: int, maximum: int, least: int | None) -> list[tuple[int, int, int]]:
    """(start, extent, rows) of the tiles of a row, and of those that are one row smaller.

    A tile of fewer than the `least` rows takes longer for a row than others: weights do not arrive as fast as it takes
    them.  So where one would be left behind the largest tiles, as many tiles are nearly equal.
    """
    rows = rows_for(extent, maximum, least)
    rest, few = extent % rows, maximum // 2 + 1 if least is None else least
    if not 0 < rest < few:
        return split(extent, rows)
    smaller, larger = divmod(extent, -(-extent // maximum))
    whole = larger * (smaller + 1)
    parts = [(0, whole, smaller + 1), (whole, extent - whole, smaller)]
    return [part for part in parts if part[1]]


# How wide a tile of element-wise code is.

TILE_LANES = 16
"""Numbers along the innermost axis that a tile computes together, as 32 bits each, where nothing else asks for a width.

That is one vector of 512 bits, two of 256 or four of 128: enough that operations on one vector go on while those on
another wait for a result, and few enough that what lies between two operations stays in registers.  On a Zen 4, sums
and products of quantized bytes take 0.93 to 1.12 times as long with 8, and 0.95 to 1.09 times with 32, by vectors of
128, 256 and 512 bits.
"""
