"""Models of CPU cores: their units, pipes and cache levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import combinations

# From which levels of memory a core gets bytes, how many in a cycle and how late.
#
# Lines come from a level while instructions go on that wait for none of them: streams are fetched ahead.  A call of a
# kernel therefore takes as long as its instructions or as its bytes, whichever is longer, and waits for the first bytes
# from beyond L2, without prefetches:
#
#   call + latency of the farthest level + max(instructions, sum over levels of bytes / bandwidth)


@dataclass(frozen=True)
class Level:
    """A cache, or the memory behind all of them."""

    size: float
    """Bytes since the last use of something that it still has."""
    bandwidth: float
    """Bytes that arrive from there in a cycle."""
    latency: int
    """Cycles until the first ones have, where that shows."""


@dataclass(frozen=True)
class Levels:
    """All levels of one core, the nearest first; the last one has everything."""

    levels: tuple[Level, ...]
    call_cycles: int
    """Cycles of a call of a kernel that does nothing."""

    def cycles(self, instructions: float, uses: Iterable[tuple[float, float]]) -> tuple[float, float]:
        """Cycles of a call with `instructions` cycles of them: at least, and as predicted.

        `uses` are (bytes, bytes used since their last use).
        """
        waited, late = 0.0, 0
        for size, distance in uses:
            level = next((one for one in self.levels if distance <= one.size), self.levels[-1])
            waited += size / level.bandwidth
            late = max(late, level.latency)
        return waited, self.call_cycles + late + max(instructions, waited)


# Measured with streams of reads and of writes, which count alike, and with chains of loads: eight cores share a third
# level of 32 MB, of which a core can count on no more than 8 MB while the others run. A loop of dot products on data
# from L2 takes the longer time of the two, not the sum.
ZEN_4_LEVELS = Levels(
    (Level(32 << 10, float("inf"), 0), Level(1 << 20, 32, 0), Level(8 << 20, 27, 64), Level(float("inf"), 9, 590)),
    call_cycles=40,
)
# The same of a Zen 5. One core of two that share a third level of 32 MB reads 24 MB from there as fast as 4.
ZEN_5_LEVELS = Levels(
    (Level(48 << 10, float("inf"), 0), Level(1 << 20, 32, 0), Level(24 << 20, 27, 64), Level(float("inf"), 10, 590)),
    call_cycles=40,
)
# The same of a Skylake-X, of whose third level a core gets its share while others run.
SKYLAKE_X_LEVELS = Levels(
    (Level(32 << 10, float("inf"), 0), Level(1 << 20, 43, 0), Level(8 << 20, 10, 70), Level(float("inf"), 5, 220)),
    call_cycles=40,
)
# A Golden Cove core of a server whose third level all cores share: one that reads alone finds its last 64 MB there at
# the full rate. Writes to the second level have 16 bytes a cycle.
GOLDEN_COVE_LEVELS = Levels(
    (Level(48 << 10, float("inf"), 0), Level(2 << 20, 45, 0), Level(64 << 20, 9.7, 110), Level(float("inf"), 4.7, 600)),
    call_cycles=40,
)


# Which execution pipes of a core take which kinds of instructions on vectors.
#
# An instruction on `width` bits or less occupies one pipe for a cycle, a wider one as many pipes or cycles more.  What
# a mix of instructions takes at least follows from Hall's theorem: of every set of pipes, the instructions that no
# other pipe takes need as many cycles as there are of them for each of its pipes,
#
#   cycles = max over sets of pipes S of (occupations of kinds whose pipes are all in S) / |S|.


class Kind(StrEnum):
    """Kinds of vector instructions, by the pipes that take them."""

    MULTIPLY = "multiply"
    """Products of integers and floats, dot products, fused multiply-adds, and comparisons into mask registers."""
    ADD = "add"
    """Sums, minima and maxima of floats, conversions, roundings, and shifts."""
    PERMUTE = "permute"
    """Instructions that move elements between lanes or change their width."""
    INTERLEAVE = "interleave"
    """Instructions that interleave the elements of two vectors inside of 128 bits."""
    SIMPLE = "simple"
    """Sums, minima, maxima and logic of integers, and selections."""


@dataclass(frozen=True)
class Pipes:
    """The pipes of one core, by number."""

    width: int
    """Bits that a pipe computes, a load port loads and the store port stores in a cycle."""
    of_kind: Mapping[Kind, frozenset[int]] = field(hash=False)
    latencies: Mapping[Kind, int] = field(hash=False)
    """Cycles from the operands of an instruction on 512 bits to its result."""
    division_cycles: float
    """Cycles from a division of floats of `width` bits to the next."""
    root_cycles: float
    """The same of square roots."""
    mixed_share: float
    """The share of the rate of all pipes that is reached if kinds for different pipes alternate."""
    of_kind_narrow: Mapping[Kind, frozenset[int]] | None = field(default=None, hash=False)
    """Those of vectors narrower than `width`, where they are others."""

    def narrowed(self, bits: int) -> Pipes:
        """The pipes as vectors of no more than `bits` use them."""
        if bits >= self.width:
            return self
        return replace(self, width=bits, of_kind=self.of_kind_narrow or self.of_kind)

    def cycles(self, occupations: Mapping[str, float], *, mixed: bool = False) -> float:
        """Cycles of these numbers of occupations of each kind: at least, or if they alternate."""
        total = {some: sum(occupations.get(kind, 0) for kind in kinds) for some, kinds in self._kinds_within.items()}
        every = max(total, key=len)
        together = total[every] / len(every) / (self.mixed_share if mixed else 1)
        return max(together, *(count / len(some) for some, count in total.items()))

    @cached_property
    def _kinds_within(self) -> Mapping[frozenset[int], Sequence[Kind]]:
        """By the set of pipes, the kinds that no other pipe takes."""
        every = sorted(frozenset[int]().union(*self.of_kind.values()))
        sets = (frozenset(some) for size in range(1, len(every) + 1) for some in combinations(every, size))
        return {some: [kind for kind, pipes in self.of_kind.items() if pipes <= some] for some in sets}


# Every kind was measured alone and in pairs with the others, in unrolled loops of independent instructions of 512 bits.
# Of products, sums of floats and permutations one starts in a cycle, of simple ones two; a pair of products and sums
# takes one cycle, pairs of either with a permutation 4/3, as they have three pipes together. Loops in which dot
# products and simple sums, permutations of two tables and sums, or dot products and interleavings alternate take 1.25,
# 1.20 and 1.10 cycles instead of one: the core does not distribute them evenly. Latencies are those of chains of one
# instruction.
ZEN_4_PIPES = Pipes(
    width=256,
    of_kind={
        Kind.MULTIPLY: frozenset({0, 1}),
        Kind.ADD: frozenset({2, 3}),
        Kind.PERMUTE: frozenset({1, 2}),
        Kind.INTERLEAVE: frozenset({1, 2, 3}),
        Kind.SIMPLE: frozenset({0, 1, 2, 3}),
    },
    latencies={Kind.MULTIPLY: 4, Kind.ADD: 3, Kind.PERMUTE: 5, Kind.INTERLEAVE: 1, Kind.SIMPLE: 1},
    division_cycles=3,
    root_cycles=5,
    mixed_share=0.85,
)
# Zen 5 has units of 512 bits: of products, sums and permutations two start in a cycle, of simple ones and interleavings
# four. Pairs show the pipes of Zen 4, but that interleavings have all four; 0.88 of the rate is reached where dot
# products and permutations alternate.
ZEN_5_PIPES = replace(
    ZEN_4_PIPES,
    width=512,
    of_kind={**ZEN_4_PIPES.of_kind, Kind.INTERLEAVE: frozenset({0, 1, 2, 3})},
    latencies={Kind.MULTIPLY: 4, Kind.ADD: 2, Kind.PERMUTE: 5, Kind.INTERLEAVE: 2, Kind.SIMPLE: 2},
    division_cycles=2.5,
    root_cycles=4.5,
    mixed_share=0.88,
)
# Golden Cove has two pipes of 512 bits. What moves lanes has one of them, as have comparisons; shifts, and minima of
# integers, have the other one, which no kind here tells from the rest. Measured as those of Zen 4; the three pipes of
# narrower vectors are those of Fog, "Instruction tables".
GOLDEN_COVE_PIPES = Pipes(
    width=512,
    of_kind={
        Kind.MULTIPLY: frozenset({0, 5}),
        Kind.ADD: frozenset({0, 5}),
        Kind.PERMUTE: frozenset({5}),
        Kind.INTERLEAVE: frozenset({5}),
        Kind.SIMPLE: frozenset({0, 5}),
    },
    latencies={Kind.MULTIPLY: 4, Kind.ADD: 4, Kind.PERMUTE: 3, Kind.INTERLEAVE: 1, Kind.SIMPLE: 1},
    division_cycles=10,
    root_cycles=12,
    mixed_share=0.95,
    of_kind_narrow={
        Kind.MULTIPLY: frozenset({0, 1}),
        Kind.ADD: frozenset({0, 1, 5}),
        Kind.PERMUTE: frozenset({1, 5}),
        Kind.INTERLEAVE: frozenset({1, 5}),
        Kind.SIMPLE: frozenset({0, 1, 5}),
    },
)


_KB = 1 << 10
_MB = 1 << 20
_MEMORY_CYCLES = 256
"""Until memory answers."""
_TALL_ROWS = 13
"""Of tiles of two vectors that take all of 32 registers."""
_HEADROOM = 1.5
"""Of a rate that nothing waits for."""
_NEAR_FETCH = 1024
"""Bytes. Those from 512 to 2048 take as long for layers; an encoder whose weights come from memory is fastest so."""


@dataclass(frozen=True)
class Machine:
    """One core.

    Rates are of instructions on whole vectors of `vector_bits`: a dot product is `vpdpbusd` where the CPU has it,
    `vpmaddwd` elsewhere.  Figures are approximate: they follow Intel's and AMD's optimization manuals and Fog,
    "Instruction tables", and are good enough to rank tiles.  Those of Zen 4, Zen 5 and Sapphire Rapids were compared
    with measurements.
    """

    vector_bits: int
    vector_registers: int
    dot_products: float
    """Dot products that start in a cycle."""
    vector_instructions: int
    """Instructions of any kind on vectors that start in a cycle."""
    dot_latency: int
    """Cycles from the operands of a dot product to its sums."""
    loads: int
    """Loads of whole vectors in a cycle."""
    l1_bytes: int
    """Size of the L1 data cache."""
    l2_bytes: int
    l2_bandwidth: int
    """Bytes that arrive from L2 in a cycle, while loads go on."""
    tile_product_cycles: int = 0
    """Cycles from the start of a product of whole tiles to that of the next; 0 where the core has no tiles."""
    fetched_weights: int = 0
    """Bytes of weights from which on they are fetched ahead; 0 where that is the length of a long stream."""

    near_fetch_distance: int = 0
    """How many bytes ahead s16 weights are prefetched from L2; 0 if that does not pay."""

    word_dots: float = 0
    """Products of words that start in a cycle with their additions; 0 where those do not share units."""

    unit_bits: int = 0
    """Bits of the units that take two cycles for a whole vector; 0 where they are as wide as the vector."""

    pipes: Pipes | None = None
    """Which kinds of instructions compete; None where that was not measured."""

    levels: Levels | None = None
    """The rates and latency of memory; None if they were not measured."""

    multiply_adds: float = 0
    """Fused multiply-adds of f32 numbers that start in a cycle; 0 if as many as dot products."""

    @cached_property
    def vector_pipes(self) -> Pipes | None:
        """The pipes for vectors of `vector_bits`, which may be narrower than they are."""
        return self.pipes and self.pipes.narrowed(self.vector_bits)

    @property
    def is_third_level_slow(self) -> bool:
        """Whether it is known to deliver weights no faster than the tallest tiles take them.

        A tile of r rows takes a vector of weights in the time of r dot products.
        """
        taken = self.vector_bits / 8 * self.dot_products / _TALL_ROWS
        return self.levels is not None and self.levels.levels[2].bandwidth < _HEADROOM * taken

    @property
    def word_dots_started(self) -> float:
        """Products of words that start in a cycle, each with its addition to a sum as far as that takes its unit."""
        return min(self.dot_products, self.word_dots or self.dot_products)

    def narrowed(self, bits: int, registers: int) -> Machine:
        """The same core with vectors of no more than `bits` and this number of registers."""
        bits, registers = min(self.vector_bits, bits), min(self.vector_registers, registers)
        # Two vectors as wide as the units start where a whole one did.
        times = self.vector_bits // max(bits, self.unit_bits) if self.unit_bits else 1
        return replace(
            self,
            vector_bits=bits,
            vector_registers=registers,
            dot_products=times * self.dot_products,
            vector_instructions=times * self.vector_instructions,
            loads=times * self.loads,
            word_dots=times * self.word_dots,
            multiply_adds=times * self.multiply_adds,
        )

    divides_late: bool = False
    """Whether a division of 16 numbers takes longer than the six products and comparisons that give the same."""

    scales_to_zero: bool = False
    """Whether `vscalefps` is known to take no longer where its result is zero or subnormal."""

    @property
    def long_stream(self) -> int:
        """Bytes of weights that do not stay in L2: a quarter of it is assumed to be free for them."""
        return self.l2_bytes // 4

    @property
    def fetched_stream(self) -> int:
        """Bytes of weights that are fetched ahead: what a network's other layers have displaced between two calls."""
        return self.fetched_weights or self.long_stream

    @property
    def fetch_distance(self) -> int:
        """How many bytes ahead such weights are prefetched: L2's bandwidth times the latency of memory."""
        return _MEMORY_CYCLES * self.l2_bandwidth


_SSE = Machine(128, 16, 1, 3, 5, 1, 32 * _KB, 256 * _KB, 32)
_HASWELL = Machine(256, 16, 1, 3, 5, 2, 32 * _KB, 256 * _KB, 64, multiply_adds=2)
# The kind `avx2`, which has this core's tiles, is that of Zen 2 and 3, too. Fetching helps Zen cores (see below)
# and takes this one an instruction more in 36.
_SKYLAKE = replace(_HASWELL, dot_products=2, near_fetch_distance=_NEAR_FETCH)
_ALDER_LAKE = Machine(256, 16, 2, 3, 5, 3, 48 * _KB, 1280 * _KB, 64)
# A division of 16 numbers takes 10 cycles on Intel's cores with AVX-512, 6 on Zen 4, where comparisons into masks take
# two, and 2.5 on Zen 5.
_SKYLAKE_X = Machine(
    *(512, 32, 2, 2, 5, 2, 32 * _KB, _MB, 43), divides_late=True, pipes=GOLDEN_COVE_PIPES, levels=SKYLAKE_X_LEVELS
)
_ICE_LAKE = replace(_SKYLAKE_X, l1_bytes=48 * _KB, l2_bytes=1280 * _KB)
_ICE_LAKE_CLIENT = replace(_ICE_LAKE, dot_products=1, l2_bytes=512 * _KB)
# All rates and the latency were measured: 40 to 47 bytes a cycle come from the second level, and tiles that take more
# than 20 of them wait; 16 to 17 cycles pass from a product of tiles to the next. The third level delivers 9 bytes a
# cycle, and late: short streams from there are fetched ahead, too.
_SAPPHIRE_RAPIDS = replace(
    _ICE_LAKE,
    l2_bytes=2 * _MB,
    l2_bandwidth=40,
    tile_product_cycles=16,
    fetched_weights=32 * _KB,
    pipes=GOLDEN_COVE_PIPES,
    levels=GOLDEN_COVE_LEVELS,
)
_ZEN_1 = Machine(256, 16, 0.5, 2, 3, 1, 32 * _KB, 512 * _KB, 32, multiply_adds=1)
_ZEN_2 = replace(_ZEN_1, dot_products=1, multiply_adds=2, vector_instructions=4, loads=2)
_ZEN_3 = replace(_ZEN_2, dot_products=2, near_fetch_distance=_NEAR_FETCH, word_dots=1.6)
# Of 256 bits, a loop of products of words and additions reaches 0.8 of what the units allow, and one that reads words
# from the second level takes 0.91 of the time where they are fetched ahead. Zen 3 has the same units.  A scaling
# starts 2 cycles after the one before, whatever its result is.
_ZEN_4 = Machine(
    *(512, 32, 1, 2, 4, 1, 32 * _KB, _MB, 32),
    near_fetch_distance=_NEAR_FETCH,
    word_dots=0.8,
    unit_bits=256,
    pipes=ZEN_4_PIPES,
    levels=ZEN_4_LEVELS,
    scales_to_zero=True,
)
_ZEN_5 = Machine(512, 32, 2, 4, 4, 2, 48 * _KB, _MB, 64, pipes=ZEN_5_PIPES, levels=ZEN_5_LEVELS)

MACHINES: Mapping[str, Machine] = {
    **dict.fromkeys(("haswell", "core-avx2", "broadwell"), _HASWELL),
    "skylake": _SKYLAKE,
    **dict.fromkeys(("skylake-avx512", "skx", "cascadelake", "cooperlake"), _SKYLAKE_X),
    **dict.fromkeys(("icelake-client", "rocketlake"), _ICE_LAKE_CLIENT),
    "icelake-server": _ICE_LAKE,
    "alderlake": _ALDER_LAKE,
    **dict.fromkeys(("raptorlake", "meteorlake"), replace(_ALDER_LAKE, l2_bytes=2 * _MB)),
    **dict.fromkeys(("sapphirerapids", "emeraldrapids", "graniterapids"), _SAPPHIRE_RAPIDS),
    "znver1": _ZEN_1,
    "znver2": _ZEN_2,
    "znver3": _ZEN_3,
    "znver4": _ZEN_4,
    "znver5": _ZEN_5,
}
"""The models of CPUs, by LLVM's names."""


def machine_of(cpu: str, features: frozenset[str]) -> Machine:
    """The machine of an LLVM name; of a CPU of which no more is known, the one that is like it in its `features`."""
    if cpu in MACHINES:
        return MACHINES[cpu]
    if "amx-int8" in features:
        return _SAPPHIRE_RAPIDS
    if "avx512f" in features:
        return _ICE_LAKE if "avx512vbmi" in features else _SKYLAKE_X
    if "avx2" in features:
        return _ALDER_LAKE if "avxvnni" in features else _HASWELL
    return _SSE
