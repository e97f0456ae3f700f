"""Offsets of buffers of which each of two threads writes a half: the halves of all buffers lie on the same sides.

Where a buffer takes the memory of one that lived before, a thread writes what it has in its cache already if it wrote
that half before. A line that the other core has written takes several times as long. So a buffer lies around a centre,
as far below it as above, and those around one centre live one after the other. With more threads that is true of the
two halves of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from qdialect.lowering.memory.arena import Lifetime, plan_arena

_MAX_GROWTH = 1.5
"""Times the size of the smaller plan, from which on more memory costs more time than is won."""


def plan_centred_arena(lifetimes: Sequence[Lifetime], alignment: int) -> tuple[list[int], int]:
    """An offset for each buffer and the size of the block.

    The offsets are those of `plan_arena` where centres would take much more memory.
    """
    offsets, size = plan_arena(lifetimes, alignment)
    groups = _groups(lifetimes)
    # The first of a group is its largest.
    halves = [_half(lifetimes[group[0]], alignment) for group in groups]
    starts = list(accumulate((2 * half for half in halves), initial=0))
    if starts[-1] > _MAX_GROWTH * size:
        return offsets, size
    for group, start, half in zip(groups, starts, halves, strict=False):
        for index in group:
            offsets[index] = start + half - _half(lifetimes[index], alignment)
    return offsets, starts[-1]


def _groups(lifetimes: Sequence[Lifetime]) -> list[list[int]]:
    """Buffers none of which live at once, the largest of all in the first group, each in the first that it may join."""
    groups: list[list[int]] = []
    for index in sorted(range(len(lifetimes)), key=lambda i: -lifetimes[i].size):
        free = (group for group in groups if not any(_meet(lifetimes[index], lifetimes[i]) for i in group))
        group = next(free, None)
        if group is None:
            groups.append([index])
        else:
            group.append(index)
    return groups


def _meet(one: Lifetime, other: Lifetime) -> bool:
    return one.first <= other.last and other.first <= one.last


def _half(lifetime: Lifetime, alignment: int) -> int:
    """Bytes below the centre, a multiple of the alignment."""
    return -(-lifetime.size // (2 * alignment)) * alignment
