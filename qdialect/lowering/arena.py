"""Places for buffers in one block of memory: two that live at the same time never overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Lifetime:
    """A buffer's size in bytes, and the first and last step that touches it."""

    size: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Whether both live in some step."""
        return self.first <= other.last and other.first <= self.last


def plan_arena(lifetimes: Sequence[Lifetime], alignment: int) -> tuple[list[int], int]:
    """An offset for each buffer and the size of the whole, greedily: the largest first, each as low as it fits."""
    offsets = [0] * len(lifetimes)
    placed: list[int] = []
    for index in sorted(range(len(lifetimes)), key=lambda i: -lifetimes[i].size):
        own = lifetimes[index]
        rivals = sorted((offsets[i], offsets[i] + lifetimes[i].size) for i in placed if own.meets(lifetimes[i]))
        offsets[index] = _lowest_gap(rivals, own.size, alignment)
        placed.append(index)
    return offsets, max((offsets[i] + lifetimes[i].size for i in placed), default=0)


def _lowest_gap(taken: Sequence[tuple[int, int]], size: int, alignment: int) -> int:
    start = 0
    for low, high in taken:
        if start + size <= low:
            return start
        start = max(start, -(-high // alignment) * alignment)
    return start
