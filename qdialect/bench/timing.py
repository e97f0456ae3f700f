"""Times of one call, again and again."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat

# A sample holds so many calls that reading the clock does not count.
_SAMPLE_SECONDS = 20e-6
_LARGEST_BATCH = 1000
_MIN_SAMPLES = 3
_WARM_UP_SHARE = 0.2


@dataclass(frozen=True)
class Times:
    """What a round of timed calls found, in seconds a call."""

    median: float
    minimum: float
    upper: float
    """Of ten samples, nine are not above."""
    calls: int


def measure(call: Callable[[], None], seconds: float) -> Times:
    """Call for about so many `seconds`, after a warm-up; what takes longer than that is called once."""
    first = _sample(call, 1)
    if first > seconds:
        return summary([first], 1)
    batch = _warm_up(call, seconds * _WARM_UP_SHARE)
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while len(samples) < _MIN_SAMPLES or time.perf_counter() < end:
        samples.append(_sample(call, batch))
    return summary(samples, batch)


def summary(samples: Sequence[float], batch: int) -> Times:
    """Of samples, each the mean over `batch` calls."""
    ordered = sorted(samples)
    upper = ordered[min(int(0.9 * len(ordered)), len(ordered) - 1)]
    return Times(statistics.median(ordered), ordered[0], upper, len(ordered) * batch)


def _warm_up(call: Callable[[], None], seconds: float) -> int:
    """Calls in a sample."""
    end = time.perf_counter() + seconds
    minimum = _sample(call, 1)
    while time.perf_counter() < end:
        minimum = min(minimum, _sample(call, 1))
    return max(1, min(_LARGEST_BATCH, round(_SAMPLE_SECONDS / max(minimum, 1e-9))))


def _sample(call: Callable[[], None], batch: int) -> float:
    start = time.perf_counter()
    for _ in repeat(None, batch):
        call()
    return (time.perf_counter() - start) / batch
