"""Offsets of buffers in one block of memory: two that live at the same time never overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# A plan takes a millisecond; most networks need one.
_MAX_PLANS = 50


@dataclass(frozen=True)
class Lifetime:
    """A buffer's size in bytes, and the first and last call that touches it."""

    size: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Whether both live during some call."""
        return self.first <= other.last and other.first <= self.last


def plan_arena(lifetimes: Sequence[Lifetime], alignment: int) -> tuple[list[int], int]:
    """An offset for each buffer and the size of the block.

    Buffers are placed one by one, each as low as it fits, at first the largest before the others. While the whole is
    larger than what lives at once, the buffer that reaches highest goes before all that it meets, and all are placed
    anew; the best of these plans is taken.
    """
    minimum = peak(lifetimes)
    order = sorted(range(len(lifetimes)), key=lambda i: -lifetimes[i].size)
    tried: set[tuple[int, ...]] = set()
    offsets, size = _assign_offsets(lifetimes, order, alignment)
    best = offsets, size
    while best[1] > minimum and len(tried) < _MAX_PLANS and tuple(order) not in tried:
        tried.add(tuple(order))
        highest = max(order, key=lambda i: offsets[i] + lifetimes[i].size)
        order.remove(highest)
        met = (position for position, i in enumerate(order) if lifetimes[i].meets(lifetimes[highest]))
        order.insert(next(met, 0), highest)
        offsets, size = _assign_offsets(lifetimes, order, alignment)
        best = min(best, (offsets, size), key=lambda plan: plan[1])
    return best


def peak(lifetimes: Sequence[Lifetime]) -> int:
    """The largest number of bytes that live during one call."""
    # It is one in which a buffer's life begins.
    starts = {own.first for own in lifetimes}
    return max((sum(own.size for own in lifetimes if own.first <= step <= own.last) for step in starts), default=0)


def _assign_offsets(lifetimes: Sequence[Lifetime], order: Sequence[int], alignment: int) -> tuple[list[int], int]:
    """Place buffers in this order, each as low as it fits beside those placed before."""
    offsets = [0] * len(lifetimes)
    for position, index in enumerate(order):
        own = lifetimes[index]
        rivals = (i for i in order[:position] if own.meets(lifetimes[i]))
        offsets[index] = _lowest_gap(
            sorted((offsets[i], offsets[i] + lifetimes[i].size) for i in rivals), own.size, alignment
        )
    return offsets, max((offsets[i] + lifetimes[i].size for i in order), default=0)


def _lowest_gap(taken: Sequence[tuple[int, int]], size: int, alignment: int) -> int:
    start = 0
    for low, high in taken:
        if start + size <= low:
            return start
        start = max(start, -(-high // alignment) * alignment)
    return start
