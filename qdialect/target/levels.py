"""From which levels of memory a core gets bytes, how many in a cycle and how late.

Lines come from a level while instructions go on that wait for none of them: streams are fetched ahead.  A call of a
kernel therefore takes as long as its instructions or as its bytes, whichever is longer, and waits for the first bytes
from behind the second level, which nothing has fetched ahead:

  call + latency of the farthest level + max(instructions, sum over levels of bytes / bandwidth)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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

    def cycles(self, instructions: float, uses: Iterable[tuple[float, float]]) -> float:
        """Cycles of a call with so many of instructions, which uses (bytes, bytes used since they were used last)."""
        waited, late = 0.0, 0
        for size, distance in uses:
            level = next((one for one in self.levels if distance <= one.size), self.levels[-1])
            waited += size / level.bandwidth
            late = max(late, level.latency)
        return self.call_cycles + late + max(instructions, waited)


# Measured with streams of reads and of writes, which count alike, and with chains of loads: eight cores share a third
# level of 32 MB, of which a core can count on no more than 8 MB beside the others'. A loop of dot products on data from
# the second level takes the longer time of the two, not the sum.
ZEN_4_LEVELS = Levels(
    (
        Level(32 << 10, float("inf"), 0),
        Level(1 << 20, 32, 0),
        Level(8 << 20, 27, 64),
        Level(float("inf"), 9, 590),
    ),
    call_cycles=40,
)
