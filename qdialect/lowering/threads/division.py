"""Where the work of a kernel is cut into parts of equal cost.

A nest is a number of loops, each inside the one before, whose steps may run in any order. Counted through the outermost
loops, its steps are units in a row, and each part gets a stretch of them. Every nest is cut evenly, so that a part of
one kernel reads what the same part of the kernel before it wrote; what rounding to whole units gives one part too
much, the finer nests give it less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# A cut this close to an even one, as a share of a part, is good enough: counting through more loops costs more.
_TOLERANCE = 0.01


@dataclass(frozen=True)
class Work:
    """Steps of each of a nest's loops, outermost first, and cost of the whole nest."""

    trips: tuple[int, ...]
    cost: float

    def units(self, depth: int) -> int:
        """Units where steps are counted through the `depth` outermost loops."""
        return math.prod(self.trips[:depth])


@dataclass(frozen=True)
class Cut:
    """Through how many loops units are counted, and the unit where each part starts and the last one ends."""

    depth: int
    bounds: tuple[int, ...]


def cut(works: Sequence[Work], parts: int) -> list[Cut]:
    """How each of `works` is cut into `parts`."""
    part = sum(work.cost for work in works) / parts
    # Cost before each part, beyond an even share of it.
    surplus = [0.0] * (parts + 1)
    cuts: dict[int, Cut] = {}
    coarse_first = sorted(range(len(works)), key=lambda i: -works[i].cost / works[i].units(len(works[i].trips)))
    for index in coarse_first:
        work = works[index]
        cuts[index] = found = _cut(work, surplus, part)
        units = work.units(found.depth)
        pairs = enumerate(zip(surplus, found.bounds, strict=True))
        surplus = [old + work.cost * (bound / units - i / parts) for i, (old, bound) in pairs]
    return [cuts[i] for i in range(len(works))]


def largest_share(works: Sequence[Work], cuts: Sequence[Cut]) -> float:
    """The share of all cost that the most expensive part has."""
    parts = len(cuts[0].bounds) - 1
    costs = [0.0] * parts
    for work, found in zip(works, cuts, strict=True):
        unit = work.cost / work.units(found.depth)
        for i in range(parts):
            costs[i] += unit * (found.bounds[i + 1] - found.bounds[i])
    return max(costs) / sum(costs)


def _cut(work: Work, surplus: Sequence[float], part: float) -> Cut:
    """The cut through the fewest loops that is close to even, or the one through all."""
    parts = len(surplus) - 1
    wanted = [i / parts - excess / work.cost for i, excess in enumerate(surplus)]
    found = Cut(0, (0, *[1] * parts))
    for depth in range(len(work.trips) + 1):
        units = work.units(depth)
        found = Cut(depth, _bounds(wanted, units))
        errors = [abs(bound / units - share) for bound, share in zip(found.bounds, wanted, strict=True)]
        if max(errors) * work.cost <= _TOLERANCE * part:
            break
    return found


def _bounds(wanted: Sequence[float], units: int) -> tuple[int, ...]:
    bounds = [0]
    for share in wanted[1:-1]:
        bounds.append(max(bounds[-1], min(round(share * units), units)))
    return (*bounds, units)
