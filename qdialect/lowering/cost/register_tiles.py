"""Register tiles of a contraction, chosen by what a step of the reduction takes on a machine.

A tile of R rows and V vectors of channels takes, for a K group of four taps,

  products  R V dot products of bytes; or 2 R V of words with as many additions, and 2 R instructions that widen bytes
            unless words of them are stored; or, of pairs of bytes, 2 R V products and R V additions
            or R V fused multiply-adds of f32 numbers
  loads     R + V of bytes and of f32 numbers, or R + 2 V where weights are words, or 2 R + 2 V where the data is, too
  weights   4 V bytes for each lane, or 8 V where they are words, from where they lie
  latency   that of a product, as every accumulator waits for its last one

in cycles: products / the machine's dot products a cycle, or those of words with their additions, all its instructions /
instructions a cycle, loads / loads a cycle, and bytes / bytes a cycle.  The longest of these is the step; the best tile
has the shortest step for R V.  Of those that are equal 4 vectors are better than 2, than 3, than 1: blocks of channels
are mostly powers of two.

Before AVX an instruction overwrites one of its operands, so that each product, and a mask, needs a copy; and a row is
spread over the lanes by an instruction of its own.

Weights within the first level cost only their loads; from the second level they come at half of its bandwidth, as data
and results share it, and from beyond at a quarter, or, where words are fetched ahead, at 16 bytes a cycle.  A quarter
of the second level is taken to be free for weights.

All of it must fit the registers: R V accumulators, V weights and one broadcast row; or for words 2 R operands, and a
weight, a product and a mask; or for stored words V weights, a broadcast row and a product; or for pairs the same and
ones; or for f32 numbers V weights and rows that are broadcast ahead: LLVM's scheduler takes a sixth of the registers
for them, and where too few are left moves sums from register to register.

Pairs are for weights that keep the bound of `sums_fit`.  Those that do not need K groups of
their own for what is beyond: where these are a share f of all, pairs are taken where 1 + f times their cycles are no
more than those of words.  Weights that meet few rows are widened in registers, 3 instructions for each vector.

Words of the data are stored before where the cycles of their tiles, and one for each vector that is stored, are fewer
than those of both others.

Between two tiles stands the epilogue, some 10 instructions for each accumulator, and the processor looks about 100
vector instructions ahead.  After a short reduction of bytes a tile is small, so that the next one's products start
meanwhile: two accumulators for each product that starts until the first one has arrived.  Where a core loads one vector
a cycle, and an epilogue reads several numbers for each channel, all rows of a tile share what is loaded: four.  Weights
from the second level take longer to arrive: a tile of 4 vectors has at least rows enough for that, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.targets.machine import Machine

_ANY = 1 << 62
_SHORT = 192
"""Taps of a reduction after which the epilogue counts."""
_FEW = 1
"""Numbers of each channel, without the start of its sum, that short tiles load as they need them."""
_WIDEST = (4, 2, 3, 1)
"""Vectors of a tile, the best first where all else is equal."""
_FEWEST = 2
"""Vectors of the tiles that most rows choose."""
_MAX_ROWS = 16
"""A single vector is bound by broadcasts: more rows gain nothing."""
_FETCHED_BANDWIDTH = 16
"""Bytes of weights that arrive in a cycle from beyond the second level where they are fetched ahead."""
_TWO_OPERANDS = 4
"""Lanes of vectors whose instructions overwrite an operand: those before AVX."""
_TEMPORARIES = 3
"""Registers for words or pairs in addition to the operands."""
_WIDENING = 3
"""Instructions for a vector of weights that are widened in registers."""


class Layout(Enum):
    """How the K groups of a contraction lie, and how their products are summed up."""

    BYTES = auto()
    """Four at a time."""
    WORDS = auto()
    """Two at a time, of words: weights as words, of data that bytes are widened to."""
    PAIRS = auto()
    """Two at a time to words, and two of these."""
    STORED_WORDS = auto()
    """Two at a time, of words that lie in memory."""
    FLOATS = auto()
    """One at a time, of f32 numbers: a fused multiply-add takes the place of a dot product of four bytes."""


_AHEAD = 6
"""Of so many registers one holds a row that is broadcast ahead."""
_OTHER_REGISTERS = {Layout.BYTES: 1, Layout.PAIRS: _TEMPORARIES, Layout.STORED_WORDS: 2}
"""Registers that are neither accumulators nor weights, of products whose weights stay in registers."""


@dataclass(frozen=True)
class Tiles:
    """Most rows of a register tile by its number of vectors, for up to `taps` taps and fewer than `size` bytes.

    An epilogue has up to `parameters` numbers of each channel.
    """

    rows: Mapping[int, int]
    taps: int = _ANY
    size: int = _ANY
    parameters: int = _ANY
    cost: float = field(default=0.0, compare=False)
    """Cycles of the best tile for a vector of sums and a K group."""


@dataclass(frozen=True)
class Candidate:
    """A register tile, and the cycles that each resource needs for a K group."""

    vectors: int
    rows: int
    cycles: Mapping[str, float]

    @property
    def bound(self) -> str:
        """The resource that takes longest."""
        return max(self.cycles, key=lambda name: self.cycles[name])

    @property
    def step(self) -> float:
        """Cycles for a K group."""
        return self.cycles[self.bound]

    @property
    def cost(self) -> float:
        """Cycles for a vector of sums and a K group."""
        return self.step / (self.vectors * self.rows)


@dataclass(frozen=True)
class Choice:
    """The candidates for some reductions; the first has the least cost."""

    title: str
    candidates: tuple[Candidate, ...]
    taps: int = _ANY
    size: int = _ANY
    parameters: int = _ANY

    @property
    def tiles(self) -> Tiles:
        """The rows of the best tile, and of narrower ones for the channels that are left."""
        widest = self.candidates[0].vectors
        rows = {one.vectors: one.rows for one in self.candidates if one.vectors <= widest}
        return Tiles(
            dict(sorted(rows.items(), reverse=True)), self.taps, self.size, self.parameters, self.candidates[0].cost
        )


@dataclass(frozen=True)
class TileModel:
    """Register tiles on a machine with vectors of `lanes` sums."""

    machine: Machine
    lanes: int
    layout: Layout = Layout.BYTES
    pixels: int = _ANY
    """Rows that there are, which tiles share evenly."""

    def widening(self, rows: int) -> float:
        """Cycles for a vector of sums and a K group that weights cost that meet `rows` rows and are not words."""
        return _WIDENING / self.machine.vector_instructions / rows

    def choices(self) -> Iterator[Choice]:
        """The choice for each kind of reduction, the first that holds counts."""
        near, far = 1 << (self.machine.l1_bytes.bit_length() - 1), self.machine.long_stream
        # f32 products meet all rows in steps, whose weights stay there.
        far = _ANY if self.layout is Layout.FLOATS else far
        first, second, beyond = _ANY, self.machine.l2_bandwidth / 2, self._far_bandwidth
        if self._is_one_step:
            yield from self._short_choices(near)
        in_l1, in_l2 = self._choice("weights in L1", first, size=near), self._choice("weights in L2", second, size=far)
        if self._is_one_step and in_l1.tiles.rows != in_l2.tiles.rows:
            yield in_l1
        yield in_l2
        if far < _ANY:
            yield self._choice("weights beyond", beyond)

    def _short_choices(self, near: int) -> Iterator[Choice]:
        """Of weights in the first level by the parameters of the epilogue, then of those in the second."""
        second = self.machine.l2_bandwidth / 2
        arriving = math.ceil(4 * self.lanes * _WIDEST[0] / second * self.machine.dot_products)
        kinds = {2: _FEW, 4: _ANY} if self.machine.loads == 1 else {2: _ANY}
        fewest = {self._in_flight * times: parameters for times, parameters in kinds.items()}
        for accumulators, parameters in fewest.items():
            choice = self._choice("short, weights in L1", _ANY, accumulators, _SHORT, near)
            yield replace(choice, parameters=parameters)
        for accumulators, parameters in {max(arriving, own): some for own, some in fewest.items()}.items():
            yield replace(self._choice("short", second, accumulators, _SHORT), parameters=parameters)

    def possible_tiles(self) -> Iterator[tuple[int, int]]:
        """Rows and vectors of each tile that fits the registers, and of smaller ones for short reductions."""
        for vectors in _WIDEST:
            most = self.fitting_rows(vectors)
            rows = {min(most, -(-times * self._in_flight // vectors)) for times in (1, 2, 3, 4, most * vectors)}
            yield from ((some, vectors) for some in sorted(rows, reverse=True) if some)

    @property
    def _is_one_step(self) -> bool:
        """Whether an instruction multiplies, and adds to the sums."""
        return self.layout in (Layout.BYTES, Layout.FLOATS)

    @property
    def sums_in_flight(self) -> int:
        """Vectors of sums that a tile needs so that none waits for the last product; 0 where additions are short."""
        return self._in_flight if self._is_one_step else 0

    def takes_rows(self, rows: int) -> bool:
        """Whether tiles are chosen for so many rows: of f32 numbers any, of bytes so few that sums may wait."""
        return self.layout is Layout.FLOATS or (self._is_one_step and _FEWEST * rows < self._in_flight)

    @property
    def _in_flight(self) -> int:
        """Products that start until the sums of the first one are there."""
        return math.ceil(self.machine.dot_latency * self.machine.dot_products)

    @property
    def _far_bandwidth(self) -> float:
        """Bytes of weights that arrive in a cycle from beyond the second level."""
        is_fetched = self.layout is Layout.STORED_WORDS and self.machine.near_fetch_distance
        return _FETCHED_BANDWIDTH if is_fetched else self.machine.l2_bandwidth / 4

    def with_narrower(self, rows: int, vectors: int) -> Tiles:
        """A tile, and for the channels that are left over narrower ones with no more accumulators."""
        narrower = {narrow: min(self.fitting_rows(narrow), rows * vectors // narrow) for narrow in range(1, vectors)}
        return Tiles({vectors: rows} | dict(sorted(narrower.items(), reverse=True)))

    def cycles(self, rows: int, vectors: int, size: int) -> float:
        """Cycles of a tile for a K group, with weights of `size` bytes; few rows wait for the latency of products."""
        near = size < self.machine.long_stream
        return self._candidate(vectors, rows, self.machine.l2_bandwidth / 2 if near else self._far_bandwidth).step

    def _choice(
        self, title: str, bandwidth: float, accumulators: int | None = None, taps: int = _ANY, size: int = _ANY
    ) -> Choice:
        most = {vectors: self.fitting_rows(vectors) for vectors in _WIDEST}
        if accumulators is not None:
            most = {vectors: min(rows, -(-accumulators // vectors)) for vectors, rows in most.items()}
        found = [self._candidate(vectors, rows, bandwidth) for vectors, rows in most.items() if rows]
        # Of f32 numbers the tile of most rows is better where all else is equal: it reads weights least often.
        tall = int(self.layout is Layout.FLOATS)
        ordered = sorted(found, key=lambda one: (one.cost, one.vectors % 2, -tall * one.rows))
        return Choice(title, tuple(ordered), taps, size)

    def _candidate(self, vectors: int, rows: int, bandwidth: float) -> Candidate:
        machine = self.machine
        sums, words = rows * vectors, self.layout in (Layout.WORDS, Layout.STORED_WORDS)
        data = 2 * rows if self.layout is Layout.STORED_WORDS else rows
        products = sums if self._is_one_step else 2 * sums
        instructions = {
            Layout.BYTES: sums,
            Layout.FLOATS: sums,
            Layout.WORDS: 4 * sums + 2 * rows,
            Layout.PAIRS: 3 * sums,
            Layout.STORED_WORDS: 4 * sums,
        }
        started = instructions[self.layout] + self._copies(rows, sums, data)
        dots = machine.word_dots_started if words else machine.dot_products
        if self.layout is Layout.FLOATS and machine.multiply_adds:
            dots = machine.multiply_adds
        cycles = {
            "products": max(products / dots, started / machine.vector_instructions),
            "loads": (data + (2 if words else 1) * vectors) / machine.loads,
            "weights": (8 if words else 4) * self.lanes * vectors / bandwidth,
            "latency": float(machine.dot_latency),
        }
        return Candidate(vectors, rows, cycles)

    def _copies(self, rows: int, sums: int, data: int) -> int:
        """Copies and broadcasts, where instructions overwrite an operand and loads do not broadcast."""
        if self.lanes > _TWO_OPERANDS:
            return 0
        overwritten = {Layout.BYTES: sums, Layout.FLOATS: sums, Layout.PAIRS: sums, Layout.STORED_WORDS: 2 * sums}
        return data + overwritten.get(self.layout, 2 * sums + rows)

    def fitting_rows(self, vectors: int) -> int:
        """Most rows of a tile of so many vectors."""
        registers = self.machine.vector_registers
        if self.layout is Layout.WORDS:
            return min((registers - _TEMPORARIES) // (vectors + 2), _MAX_ROWS)
        others = registers // _AHEAD if self.layout is Layout.FLOATS else _OTHER_REGISTERS[self.layout]
        most = min((registers - vectors - others) // vectors, _MAX_ROWS)
        return -(-self.pixels // -(-self.pixels // most)) if most else 0


@cache
def tiles_of(model: TileModel) -> tuple[Tiles, ...]:
    """The tiles of each choice."""
    return tuple(choice.tiles for choice in model.choices())


def explained(model: TileModel) -> str:
    """The candidates of each choice with their cycles for a K group, as text; the best one stands first."""
    lines = ((_title(choice, model.layout), *map(_line, choice.candidates)) for choice in model.choices())
    return "\n".join(line for some in lines for line in some)


def _title(choice: Choice, layout: Layout) -> str:
    if layout is not Layout.BYTES:
        return f"{layout.name.lower().replace('_', ' ')}, {_condition(choice)}"
    return _condition(choice)


def _condition(choice: Choice) -> str:
    taps = f", up to {choice.taps} taps" if choice.taps < _ANY else ""
    size = f", below {choice.size} bytes" if choice.size < _ANY else ""
    few = f", up to {choice.parameters} parameter by channel" if choice.parameters < _ANY else ""
    return f"{choice.title}{taps}{size}{few}"


def _line(one: Candidate) -> str:
    cycles = ", ".join(f"{name} {value:.1f}" for name, value in one.cycles.items())
    step, sums = one.cycles[one.bound], one.rows * one.vectors
    tile = f"{one.rows:2} rows x {one.vectors} vectors"
    return f"  {tile}: {step:.1f} cycles for {sums} sums, {one.cost:.2f} each, bound by {one.bound} ({cycles})"


# Sums of two products of bytes that 16 bits hold, which `vpmaddubsw` adds without saturating.
#
# With data x in 0..255 and signed weights a and b of two taps that lie side by side,
#
#   -255 (max(-a, 0) + max(-b, 0)) <= x a + y b <= 255 (max(a, 0) + max(b, 0)),
#
# which 16 bits hold for every x and y just where each of the two sums of weights is at most 128: 255 * 128 = 32640, and
# 255 * 129 = 32895 is more than 32767.  Weights of different signs never exceed it.  What is beyond goes into parts of
# its own, each of which keeps the bound, as the remainder of weights that are more than a signed byte does.
#
# The same bound of all taps would allow a sum of 16 bits to go on over several pairs; trained weights rarely keep it.

LARGEST_PAIR = 128
"""The maximum of the sum of a pair's weights of one sign."""
_LARGEST_BYTE = 127
_PAIR = 2


def sums_fit(taps: NDArray[Any]) -> bool:
    """Whether every pair of `taps`, two after the other of int8[..., even], keeps the bound."""
    pairs = taps.reshape(-1, _PAIR).astype(np.int16)
    above, below = pairs.clip(min=0).sum(axis=1), (-pairs).clip(min=0).sum(axis=1)
    return int(max(above.max(initial=0), below.max(initial=0))) <= LARGEST_PAIR


def parts_that_fit(taps: NDArray[np.int16]) -> list[NDArray[np.int8]]:
    """As few int8[..., contiguous] as sum up to `taps`, of each of which every pair keeps the bound; at least one."""
    parts: list[NDArray[np.int8]] = []
    while not parts or taps.any():
        parts.append(_largest_part(taps))
        taps = taps - parts[-1]
    return parts


def _largest_part(taps: NDArray[np.int16]) -> NDArray[np.int8]:
    """Of every pair the first tap as far as a byte holds it, and of the second one what the bound leaves."""
    *_, contiguous = taps.shape
    padded = np.pad(taps, [(0, 0)] * (taps.ndim - 1) + [(0, contiguous % _PAIR)])
    first, second = padded[..., 0::2], padded[..., 1::2]
    own = np.clip(first, -LARGEST_PAIR, _LARGEST_BYTE)
    # A tap of the other sign does not count.
    high = np.minimum(LARGEST_PAIR - own.clip(min=0), _LARGEST_BYTE)
    low = -LARGEST_PAIR - own.clip(max=0)
    found = np.stack([own, np.clip(second, low, high)], axis=-1).reshape(padded.shape)
    return found[..., :contiguous].astype(np.int8)
