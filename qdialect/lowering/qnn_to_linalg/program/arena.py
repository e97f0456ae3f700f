"""Offsets of buffers in one block of memory: two that live at the same time never overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate

# A plan takes a millisecond; most networks need one.
_MAX_PLANS = 50


@dataclass(frozen=True)
class Lifetime:
    """A buffer's size in bytes, and the first and last call that touches it."""

    size: int
    first: int
    last: int


def plan_arena(lifetimes: Sequence[Lifetime], alignment: int) -> tuple[list[int], int]:
    """An offset for each buffer and the size of the block.

    Buffers are placed one by one, each as low as it fits, at first the largest before the others. While a smaller block
    is not ruled out, the buffer that reaches highest goes before all that it meets, and all are placed anew; the best
    of these plans is taken.
    """
    minimum = _lower_bound(lifetimes, alignment)
    met = _met_by_each(lifetimes)
    order = sorted(range(len(lifetimes)), key=lambda i: -lifetimes[i].size)
    tried: set[tuple[int, ...]] = set()
    offsets, size = _assign_offsets(lifetimes, met, order, alignment)
    best = offsets, size
    while best[1] > minimum and len(tried) < _MAX_PLANS and tuple(order) not in tried:
        tried.add(tuple(order))
        highest = max(order, key=lambda i: offsets[i] + lifetimes[i].size)
        order.remove(highest)
        order.insert(next((position for position, i in enumerate(order) if i in met[highest]), 0), highest)
        offsets, size = _assign_offsets(lifetimes, met, order, alignment)
        best = min(best, (offsets, size), key=lambda plan: plan[1])
    return best


def peak(lifetimes: Sequence[Lifetime]) -> int:
    """The largest number of bytes that live during one call."""
    return max((sum(lifetimes[i].size for i in living) for living in _living(lifetimes)), default=0)


def _lower_bound(lifetimes: Sequence[Lifetime], alignment: int) -> int:
    """A size that no plan is below.

    Buffers that live at once begin at multiples of the alignment, so each takes up its size rounded up to one; only the
    one that reaches highest may end before.
    """
    unused = [-own.size % alignment for own in lifetimes]
    sizes = (
        sum(lifetimes[i].size + unused[i] for i in living) - max(unused[i] for i in living)
        for living in _living(lifetimes)
    )
    return max(sizes, default=0)


def _met_by_each(lifetimes: Sequence[Lifetime]) -> list[set[int]]:
    """For each buffer those that live during some call with it."""
    found: list[set[int]] = [set() for _ in lifetimes]
    for *others, last in _living(lifetimes):
        found[last].update(others)
        for other in others:
            found[other].add(last)
    return found


def _living(lifetimes: Sequence[Lifetime]) -> Iterator[list[int]]:
    """For each buffer, in the order in which their lives begin: those that live then, itself at the end."""
    living: list[int] = []
    for index in sorted(range(len(lifetimes)), key=lambda i: lifetimes[i].first):
        living = [i for i in living if lifetimes[i].last >= lifetimes[index].first] + [index]
        yield living


def _assign_offsets(
    lifetimes: Sequence[Lifetime], met: Sequence[Set[int]], order: Sequence[int], alignment: int
) -> tuple[list[int], int]:
    """Place buffers in this order, each at the lowest offset where it overlaps none that was placed before."""
    offsets: dict[int, int] = {}
    for index in order:
        taken = sorted((offsets[i], offsets[i] + lifetimes[i].size) for i in met[index] if i in offsets)
        offsets[index] = _lowest_gap(taken, lifetimes[index].size, alignment)
    size = max((offsets[i] + lifetimes[i].size for i in order), default=0)
    return [offsets[i] for i in range(len(lifetimes))], size


def _lowest_gap(taken: Sequence[tuple[int, int]], size: int, alignment: int) -> int:
    start = 0
    for low, high in taken:
        if start + size <= low:
            return start
        start = max(start, -(-high // alignment) * alignment)
    return start


# Offsets of buffers of which each of two threads writes a half: the halves of all buffers lie on the same sides.
#
# Where a buffer takes the memory of one that lived before, a thread writes what it has in its cache already if it wrote
# that half before. A line that the other core has written takes several times as long. So a buffer lies around a
# centre, as far below it as above, and those around one centre live one after the other. With more threads that is true
# of the two halves of them.

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
