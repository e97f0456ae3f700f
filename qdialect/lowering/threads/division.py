"""Where the work of a kernel is cut into parts of equal cost.

A loop nest consists of loops, each inside the one before, whose iterations may run in any order. The iterations of its
outermost loops are numbered in a row, and each part gets a contiguous range of them.

All loop nests of a kernel are divided at the same offsets of what they write: so a part reads what the same part of the
kernel before it wrote, and borders go with the rows that they belong to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

# A part this much more expensive than an even share is good enough: counting through more loops costs more.
_TOLERANCE = 0.01


@dataclass(frozen=True)
class Work:
    """A loop nest: the trip counts of its loops, outermost first, its cost, and where it writes."""

    trips: tuple[int, ...]
    cost: float
    start: int = 0
    strides: tuple[int, ...] = ()
    """Elements from one iteration of each loop to the next."""
    extent: int = 1
    """Elements of the buffer that it writes."""
    span: int = 1
    """Elements from the first that an iteration of the outermost loop writes to behind the last."""

    def units(self, depth: int) -> int:
        """Iterations of the `depth` outermost loops together."""
        return math.prod(self.trips[:depth])

    def positions(self, depth: int) -> NDArray[np.int64]:
        """About where each iteration writes, in ascending order."""
        found = np.full(1, self.start, np.int64)
        for trips, stride in list(zip(self.trips, self.strides, strict=True))[:depth]:
            found = (found[:, None] + np.arange(trips) * stride).reshape(-1)
        if (np.diff(found) >= 0).all():
            return found
        even: NDArray[np.float64] = np.linspace(float(found.min()), float(found.max()), len(found))
        return even.astype(np.int64)


@dataclass(frozen=True)
class Partition:
    """How many outermost loops are divided, and the iteration where each part starts and the last one ends."""

    depth: int
    bounds: tuple[int, ...]


def partition(works: Sequence[Work], parts: int) -> list[Partition]:
    """How each of `works` is cut into `parts`: through the fewest loops that make parts even, or the best there is."""
    alike = _cut_alike(works, parts)
    if alike and largest_share(works, alike) * parts <= 1 + _TOLERANCE:
        return alike
    best, minimum = _partition(works, parts, 0), 1.0
    for depth in range(1 + max(len(work.trips) for work in works)):
        found = _partition(works, parts, depth)
        share = largest_share(works, found)
        if share < minimum * (1 - _TOLERANCE):
            best, minimum = found, share
        if share * parts <= 1 + _TOLERANCE:
            break
    return best


def chained_partition(works: Sequence[Work], parts: int) -> list[Partition] | None:
    """`works` that touch what others of them write, all cut at the same shares of their buffers.

    No iteration of an outermost loop writes on both sides of such a share; None where there are too few.
    """
    depths = [min(1, len(work.trips)) for work in works]
    starts = [work.positions(depth) / work.extent for work, depth in zip(works, depths, strict=True)]
    shares = np.unique(np.concatenate(starts))
    for work, depth in zip(works, depths, strict=True):
        ends = np.insert((work.positions(depth) + work.span) / work.extent, 0, 0.0)
        shares = shares[ends[np.searchsorted(work.positions(depth) / work.extent, shares)] <= shares]
    if len(shares) < parts:
        return None
    before = [np.searchsorted(found, shares) for found in starts]
    costs = sum(work.cost / work.units(depth) * n for work, depth, n in zip(works, depths, before, strict=True))
    total = sum(work.cost for work in works)
    cuts = [int(np.argmin(np.abs(costs - total * part / parts))) for part in range(1, parts)]
    return [
        Partition(depth, (0, *(int(n[cut]) for cut in cuts), work.units(depth)))
        for work, depth, n in zip(works, depths, before, strict=True)
    ]


def largest_share(works: Sequence[Work], partitions: Sequence[Partition]) -> float:
    """The share of all cost that the most expensive part has."""
    costs = sum(
        work.cost / work.units(found.depth) * np.diff(found.bounds)
        for work, found in zip(works, partitions, strict=True)
    )
    return float(np.max(costs) / np.sum(costs))


def _cut_alike(works: Sequence[Work], parts: int) -> list[Partition] | None:
    """All outermost loops cut at the same iterations, where they are over the same rows or columns.

    What such loops share, such as the weights of the columns, is read by one thread, and parts are even whatever one
    loop costs beside another.
    """
    if len({(work.trips[:1], work.strides[:1]) for work in works}) != 1 or not works[0].trips:
        return None
    count = works[0].trips[0]
    return [Partition(1, tuple(round(count * part / parts) for part in range(parts + 1)))] * len(works)


def _partition(works: Sequence[Work], parts: int, depth: int) -> list[Partition]:
    """The division of at most the `depth` outermost loops."""
    depths = [min(depth, len(work.trips)) for work in works]
    units = [work.units(depth) for work, depth in zip(works, depths, strict=True)]
    positions = np.concatenate([work.positions(depth) for work, depth in zip(works, depths, strict=True)])
    costs = np.repeat([work.cost / count for work, count in zip(works, units, strict=True)], units)
    order = np.argsort(positions, kind="stable")
    middles = np.cumsum(costs[order]) - costs[order] / 2
    share = float(costs.sum()) / parts
    ends = [0, *(int(np.count_nonzero(middles < share * part)) for part in range(1, parts)), len(order)]
    owner = np.empty(len(order), np.int64)
    for part, (first, last) in enumerate(pairwise(ends)):
        owner[order[first:last]] = part
    begins = np.cumsum([0, *units])
    return [
        Partition(chosen, tuple(int(np.count_nonzero(owner[first:last] < part)) for part in range(parts + 1)))
        for chosen, (first, last) in zip(depths, pairwise(begins), strict=True)
    ]
