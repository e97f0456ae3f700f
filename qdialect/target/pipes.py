"""Which execution pipes of a core take which kinds of instructions on vectors.

An instruction on `width` bits or less occupies one pipe for a cycle, a wider one as many pipes or cycles more.  What a
mix of instructions takes at least follows from Hall's theorem: of every set of pipes, the instructions that no other
pipe takes need as many cycles as there are of them for each of its pipes,

  cycles = max over sets of pipes S of (occupations of kinds whose pipes are all in S) / |S|.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import combinations


class Kind(StrEnum):
    """What instructions on vectors do, as far as it matters which pipes take them."""

    MULTIPLY = "multiply"
    """Products of integers and floats, dot products, fused multiply-adds, and comparisons into mask registers."""
    ADD = "add"
    """Sums, minima and maxima of floats, conversions, roundings, and shifts."""
    PERMUTE = "permute"
    """What moves elements between lanes or changes their width."""
    INTERLEAVE = "interleave"
    """What interleaves the elements of two vectors inside of 128 bits."""
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
    division_cycles: int
    """Cycles from a division of floats of `width` bits to the next."""
    root_cycles: int
    """The same of square roots."""
    mixed_share: float
    """What all pipes together do of that number of instructions, if kinds alternate that different pipes take."""

    def cycles(self, occupations: Mapping[str, float], *, mixed: bool = False) -> float:
        """Cycles that so many occupations of each kind take: at least, or where they alternate."""
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
