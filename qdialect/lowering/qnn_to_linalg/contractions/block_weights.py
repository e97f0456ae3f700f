"""Weights of few bits in blocks, which kernels read as they are packed: a word of 32 bits for some terms of a column.

A word has 32 / bits consecutive terms of a column: byte i of it has term 4 j + i from bit ``bits * j`` on. So a shift
and a mask make four bytes of the word that a dot product multiplies, or one integer. Words of neighbouring columns lie
side by side, as many as a panel has, then those of the next terms. Terms beyond the last are 0.

Scales and zero points lie in panels too, one row for each block, in the narrowest form that holds all of them. Floats
of 16 bits are packed alike, two to a word, and have neither. The first one is the upper half of a word, whose product
`vdpbf16ps` adds first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.block_weights import unpack
from qdialect.arithmetic.small_floats import WIDEN
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.lowering.cost.strategy import ChannelBlock, Strategy, lane_parts
from qdialect.lowering.qnn_to_linalg.program.program import lanes_for
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

BYTES = 4
"""Of a word."""
_VECTORS = 4
"""Of a panel: their sums are independent chains."""
_CHUNK = 1 << 16
"""Words that are packed at once, which stay near."""
HALF, UPPER_HALF, _LOWER_HALF = 16, -1 << 16, 0xFFFF
_FRACTION, _SIGNIFICANT = 23, 24
_SMALLEST, _LARGEST = 64, 192
"""Exponents of scales whose products with integers of 24 bits are normal numbers."""


@dataclass(frozen=True)
class Numbers:
    """An array of f32 numbers in the narrowest `form` that holds them exactly."""

    form: str
    """``ui8``, ``f16``, ``bf16`` or ``f32``."""
    values: NDArray[Any]

    @classmethod
    def of(cls, numbers: NDArray[np.float32]) -> Numbers:
        """`numbers` in the first form that has them all."""
        bits = numbers.view(np.int32)
        with np.errstate(all="ignore"):
            small, half = numbers.astype(np.uint8), numbers.astype(np.float16)
        if (small.astype(np.float32).view(np.int32) == bits).all():
            return cls("ui8", small)
        if np.isfinite(half).all() and (half.astype(np.float32).view(np.int32) == bits).all():
            return cls("f16", half.view(np.int16))
        if not (bits & 0xFFFF).any():
            return cls("bf16", (bits >> HALF).astype(np.int16))
        return cls("f32", numbers)

    def widened(self, body: Body, stored: Value, strategy: Strategy) -> Value:
        """A stored number as f32."""
        if self.form == "f32":
            return stored
        if self.form == "f16" and strategy.converts_halves:
            return body.cast("arith.extf", body.cast("arith.bitcast", stored, "f16"), "f32")
        if self.form == "ui8":
            return body.cast("arith.sitofp", body.cast("arith.extui", stored, "i32"), "f32")
        return WIDEN[self.form](body, stored)


def small_form(numbers: NDArray[np.float32]) -> str:
    """The type of 16 bits that has all of `numbers`, which are finite; empty if there is none."""
    if not (numbers.view(np.int32) & _LOWER_HALF).any():
        return "bf16" if np.isfinite(numbers).all() else ""
    with np.errstate(over="ignore"):
        half = numbers.astype(np.float16)
    return "f16" if (half.astype(np.float32) == numbers).all() else ""


@dataclass(frozen=True)
class Blocks:
    """The terms of a row: `depth` of them, in blocks of `size`, the last one perhaps shorter."""

    depth: int
    size: int

    @property
    def count(self) -> int:
        """How many there are."""
        return -(-self.depth // self.size)

    def parts(self) -> Iterator[tuple[int, int, int]]:
        """(first, count, length) of the blocks of one length."""
        whole, rest = divmod(self.depth, self.size)
        yield from ((0, whole, self.size),) if whole else ()
        yield from ((whole, 1, rest),) if rest else ()


@dataclass(frozen=True)
class PackedBlocks:
    """Weights [channels, depth] in panels, for one kind of target."""

    bits: int
    blocks: Blocks
    channels: int
    panels: tuple[ChannelBlock, ...]
    words: NDArray[np.int32]
    scales: Numbers
    points: Numbers | float
    """One for all, or by block."""
    scale_bits: int
    """Significant bits of the scales; more than there are where products with them may not be normal numbers."""
    form: str = ""
    """``bf16``, ``f16`` or ``f32``, of terms that are such numbers and have neither scales nor zero points."""
    is_signed: bool = False
    """Whether numbers are signed, without zero points, for unsigned data; scales are 2^(bits - 8) times theirs."""

    @property
    def terms(self) -> int:
        """Of a word."""
        return 8 * BYTES // self.bits

    def places(self, term: int) -> int:
        """The lowest bit of a term of a word."""
        if self.bits > 8:
            return self.bits * (self.terms - 1 - term)
        return 8 * (term % BYTES) + self.bits * (term // BYTES)

    @property
    def depth_words(self) -> int:
        """Words of a column."""
        return -(-self.blocks.depth // self.terms)

    @property
    def is_integer(self) -> bool:
        """Whether zero points are integers of at most 8 bits."""
        points = self.points
        return points.form == "ui8" if isinstance(points, Numbers) else points in range(256)

    def number(self, body: Body, places: Value | int, strategy: Strategy) -> Value:
        """The number that begins at bit `places` of the word that is the first input."""
        word = body.inputs[0]
        if self.form == "f32":
            return body.cast("arith.bitcast", word, "f32")
        if places == HALF and self.form == "bf16":
            # The upper half of an f32 number.
            return body.cast("arith.bitcast", body.binary("arith.andi", word, body.constant(UPPER_HALF, "i32")), "f32")
        if places != 0:
            amount = places if isinstance(places, Value) else body.constant(places, "i32")
            word = body.binary("arith.shrui", word, amount)
        if self.form == "bf16":
            return body.cast("arith.bitcast", body.binary("arith.shli", word, body.constant(HALF, "i32")), "f32")
        return Numbers(self.form, np.empty(0)).widened(body, body.cast("arith.trunci", word, "i16"), strategy)

    def is_exact(self, base: int) -> bool:
        """Whether the product of each scale and its zero point plus `base`, 0 or a larger power of two, is f32."""
        if isinstance(self.points, Numbers):
            bits = (base or 255).bit_length()
        else:
            total = base + int(self.points)
            bits = total.bit_length() - (total & -total).bit_length() + 1
        return self.is_integer and bits + self.scale_bits <= _SIGNIFICANT


def panels_of(channels: int, strategy: Strategy) -> tuple[ChannelBlock, ...]:
    """The panels of so many columns."""
    lanes = strategy.lanes
    return tuple(
        ChannelBlock(start, size // tile, max(1, tile // lanes), min(tile, lanes))
        for start, size, tile in lane_parts(lanes_for(channels), _VECTORS * lanes, lanes)
    )


def pack_blocks(
    weight: NDArray[np.uint8],
    scales: NDArray[np.float32],
    points: NDArray[np.float32],
    bits: int,
    blocks: Blocks,
    strategy: Strategy,
) -> PackedBlocks:
    """Pack bytes [channels, ceil(depth * bits / 8)], scales and zero points [channels, blocks], or one for all."""
    channels, panels = len(weight), panels_of(len(weight), strategy)
    first = float(points.flat[0])
    same = first if (points == first).all() else None
    return PackedBlocks(
        bits,
        blocks,
        channels,
        panels,
        _words(weight, bits, blocks.depth, panels),
        Numbers.of(_in_panels(scales, panels)),
        Numbers.of(_in_panels(points, panels)) if same is None else same,
        _significant_bits(scales),
    )


def pack_signed(
    weight: NDArray[np.uint8], scales: NDArray[np.float32], bits: int, blocks: Blocks, strategy: Strategy
) -> PackedBlocks:
    """Pack such bytes less 2^(bits - 1), the middle of their range."""
    middle = np.uint8(sum(1 << place for place in range(bits - 1, 8, bits)))
    parts = weight ^ middle, np.ldexp(scales, bits - 8), np.zeros((1, 1), np.float32)
    return replace(pack_blocks(*parts, bits, blocks, strategy), is_signed=True)


def pack_floats(weight: NDArray[np.float32], form: str, strategy: Strategy) -> PackedBlocks:
    """Pack numbers [channels, depth] of the type `form`, which has them all."""
    channels, depth = weight.shape
    held = np.ascontiguousarray(weight.astype(NUMPY_DTYPES[form]))
    one, zero, bits = np.ones((channels, 1), np.float32), np.zeros((1, 1), np.float32), 8 * held.itemsize
    return replace(pack_blocks(held.view(np.uint8), one, zero, bits, Blocks(depth, depth), strategy), form=form)


def block_totals(
    weight: NDArray[np.uint8], points: NDArray[np.float32], packed: PackedBlocks
) -> NDArray[np.int16 | np.int32]:
    """The sum of ``q - z`` of each block, in panels as `packed` has scales; of 16 bits where these hold all."""
    blocks = packed.blocks
    lengths = np.array([length for _, count, length in blocks.parts() for _ in range(count)])
    starts, step = np.arange(blocks.count) * blocks.size, max(1, _CHUNK // blocks.depth)
    parts = [unpack(weight[i : i + step], packed.bits, blocks.depth) for i in range(0, len(weight), step)]
    sums = np.concatenate([np.add.reduceat(part, starts, axis=1, dtype=np.int32) for part in parts])
    totals = _in_panels(sums - lengths * points.astype(np.int32), packed.panels).astype(np.int32)
    narrow = totals.astype(np.int16)
    return narrow if (narrow == totals).all() else totals


def _significant_bits(scales: NDArray[np.float32]) -> int:
    bits = scales[scales != 0].view(np.int32)
    if not bits.size:
        return 0
    exponents, fractions = (bits >> _FRACTION) & 255, int(np.bitwise_or.reduce(bits)) & (1 << _FRACTION) - 1
    if exponents.min() < _SMALLEST or exponents.max() > _LARGEST:
        return _SIGNIFICANT + 1
    return _SIGNIFICANT - min(_FRACTION, (fractions & -fractions).bit_length() - 1 if fractions else _FRACTION)


def _words(weight: NDArray[np.uint8], bits: int, depth: int, panels: Sequence[ChannelBlock]) -> NDArray[np.int32]:
    groups = -(-depth * bits // (8 * BYTES))
    packed = np.empty(sum(block.channels for block in panels) * groups, np.uint32)
    done = 0
    for block in panels:
        width, end = block.vectors * block.lanes, block.start + block.channels
        step = max(1, _CHUNK // (width * groups)) * width
        for start in range(block.start, end, step):
            rows, count = weight[start : min(start + step, end)], min(step, end - start)
            bytes_ = np.zeros((count, groups * BYTES), np.uint8)
            bytes_[: len(rows), : weight.shape[1]] = rows
            if rest := depth * bits % 8:
                bytes_[:, weight.shape[1] - 1] &= (1 << rest) - 1
            words = _by_bytes(bytes_.view("<u4"), bits).reshape(-1, width, groups).transpose(0, 2, 1)
            packed[done : done + words.size] = words.ravel()
            done += words.size
    return packed.view(np.int32)


def _by_bytes(words: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    """Words of terms one after the other with each term in its place."""
    if bits == HALF:
        return words << np.uint32(HALF) | words >> np.uint32(HALF)
    if bits >= 8:
        return words
    found, mask = np.zeros_like(words), np.uint32((1 << bits) - 1)
    for term in range(8 * BYTES // bits):
        places = np.uint32(8 * (term % BYTES) + bits * (term // BYTES))
        found |= (words >> np.uint32(bits * term) & mask) << places
    return found


def _in_panels(numbers: NDArray[Any], panels: Sequence[ChannelBlock]) -> NDArray[Any]:
    """[channels, blocks] as [panel, block, column]; columns beyond the last are 0."""
    total = sum(block.channels for block in panels)
    padded = np.pad(numbers, ((0, total - len(numbers)), (0, 0)))
    parts = [padded[block.start : block.start + block.channels] for block in panels]
    widths = [block.vectors * block.lanes for block in panels]
    found = [
        part.reshape(-1, width, part.shape[1]).transpose(0, 2, 1) for part, width in zip(parts, widths, strict=True)
    ]
    return np.concatenate([part.ravel() for part in found])
