"""States of a core's clock: samples are taken between two runs of a bare loop, whose rate tells the state.

A core under the heaviest instructions, or one whose neighbours are busy, may flip within seconds between two rates of
the same loop, one half of the other.  A figure is one of a state, and figures of two states are not comparable.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

_APART = 1.3
"""Rates of two states differ by at least this factor; those of one by less."""
_ATTEMPTS = 4
"""To take a sample within the state."""


def seconds_of(call: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@dataclass(frozen=True)
class Sample(Generic[T]):
    """A result of a measurement, and the state of the clock."""

    found: T
    rate: float
    """Of the bare loop before and after, on average; 0 where it changed in between, or where there is no loop."""


@dataclass
class Clock:
    """Takes samples in one state: that of the first, or the one in which the clock has settled since."""

    loop: Callable[[], float]
    """Runs the bare loop: its rate, or 0 where there is none."""
    state: float = 0.0
    """Its rate in the state."""
    repeated: int = field(default=0, init=False)
    """Samples that were taken again."""

    def sample(self, take: Callable[[], T]) -> Sample[T]:
        """The result of `take`, measured once more where the clock changed meanwhile or is in another state.

        After a few attempts the last one counts; if the clock kept still during it, the state is now that one.
        """
        sample, after = self._bracketed(self.loop(), take)
        self.state = self.state or after
        for _ in range(_ATTEMPTS - 1):
            if agree(sample.rate, self.state):
                return sample
            self.repeated += 1
            sample, after = self._bracketed(after, take)
        self.state = sample.rate or self.state
        return sample

    def _bracketed(self, before: float, take: Callable[[], T]) -> tuple[Sample[T], float]:
        found, after = take(), self.loop()
        return Sample(found, (before + after) / 2 if agree(before, after) else 0.0), after


def agree(one: float, other: float) -> bool:
    """Whether two rates of the loop are of one state."""
    return max(one, other) <= _APART * min(one, other)


def common_state(rates: Sequence[float]) -> float:
    """The state of most of the `rates`, the fastest where several are as frequent; 0 where none is known."""
    states = [[other for other in rates if agree(one, other)] for one in rates if one]
    return max(((len(state), statistics.median(state)) for state in states), default=(0, 0.0))[1]
