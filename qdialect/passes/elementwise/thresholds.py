"""An element-wise graph as a step function of its source: where each of its integers begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.passes.elementwise.graph import ElementwiseGraph
from qdialect.passes.elementwise.monotonic import Interval, monotonic_intervals
from qdialect.passes.pattern import MatchFailure
from qdialect.quant_math import IntArray, Thresholds

Array = NDArray[Any]

_VALUES = 256
_PART = 2**14
"""Numbers that are evaluated at once, few enough for a cache."""
_MAX_NUMBERS = 2**22
"""Of all channels: so many are evaluated one by one where no proof says that fewer will do."""


@dataclass(frozen=True)
class GraphThresholds:
    """The thresholds of a graph that rises, and the minimum and the maximum of its integers over all channels.

    ``thresholds.first[c - minimum - 1, k]`` is the first number of channel k at which the graph is c or more.
    """

    thresholds: Thresholds
    minimum: int
    maximum: int


def thresholds_of_graph(graph: ElementwiseGraph, low: IntArray, high: IntArray) -> GraphThresholds | MatchFailure:
    """The thresholds of `graph` for the numbers ``low..high`` of each channel, int64[C] or int64[1].

    A reason where the graph is undefined for one of them, falls, or has fractions or more than 256 integers.
    """
    if graph.channels == 1:
        low, high = low.min(keepdims=True), high.max(keepdims=True)
    whole = Interval(*np.broadcast_arrays(low, high, np.zeros(graph.channels, np.int64))[:2])
    at_ends = _numbers_at(graph, whole.ends)
    if isinstance(at_ends, MatchFailure):
        return at_ends
    if at_ends.max() - at_ends.min() >= _VALUES:
        return MatchFailure(f"must have {_VALUES} values at most, but has {int(at_ends.max() - at_ends.min()) + 1}")
    intervals = monotonic_intervals(graph, whole)
    if isinstance(intervals, str):
        return _counted(graph, whole, intervals)
    ends = _numbers_at(graph, np.concatenate([interval.ends for interval in intervals]))
    if isinstance(ends, MatchFailure):
        return ends
    if np.any(np.diff(ends, axis=0) < 0):
        return MatchFailure("must not fall where the numbers it depends on rise")
    return _searched(graph, whole, int(ends.min()), int(ends.max()))


def _numbers_at(graph: ElementwiseGraph, points: IntArray) -> IntArray | MatchFailure:
    """The graph's integers at `points`, [N, C]."""
    evaluation = graph.evaluate(points)
    if evaluation.is_undefined(graph.result):
        return MatchFailure("has no defined value for every number it depends on")
    return _integers(np.broadcast_to(evaluation.values[graph.result], points.shape))


def _integers(found: Array) -> IntArray | MatchFailure:
    if found.dtype.kind != "f":
        return found.astype(np.int64)
    # Far from what int64 does not hold.
    whole = np.isfinite(found) & (np.abs(found) < 2.0**31) & (found == np.trunc(found))
    return found.astype(np.int64) if whole.all() else MatchFailure("must be an integer for every number it depends on")


def _searched(graph: ElementwiseGraph, whole: Interval, minimum: int, maximum: int) -> GraphThresholds | MatchFailure:
    """The thresholds of a graph that is known to rise, by halving."""
    integers = np.arange(minimum + 1, maximum + 1, dtype=np.int64)
    below = np.repeat(whole.low[None] - 1, len(integers), axis=0)
    first = np.repeat(whole.high[None] + 1, len(integers), axis=0)
    while np.any(first - below > 1):
        middle = np.clip((below + first) >> 1, whole.low, whole.high)
        is_at_least = graph.evaluate(middle).values[graph.result] >= integers[:, None]
        is_open = first - below > 1
        first = np.where(is_open & is_at_least, middle, first)
        below = np.where(is_open & ~is_at_least, middle, below)
    # Between two thresholds a graph that rises has the integer at both ends, or is no integer at one of them.
    for beside in (first, first - 1):
        found = _numbers_at(graph, np.clip(beside, whole.low, whole.high))
        if isinstance(found, MatchFailure):
            return found
    return GraphThresholds(Thresholds(first, integers, whole.low, whole.high), minimum, maximum)


def _counted(graph: ElementwiseGraph, whole: Interval, reason: str) -> GraphThresholds | MatchFailure:
    """The thresholds of any graph over few numbers, each of which is evaluated; `reason` says why that is needed."""
    low, high = int(whole.low.min()), int(whole.high.max())
    if (high - low + 1) * len(whole.low) > _MAX_NUMBERS:
        return MatchFailure(f"{reason}, and {(high - low + 1) * len(whole.low)} numbers are too many to try")
    points = np.clip(np.arange(low, high + 1, dtype=np.int64)[:, None], whole.low, whole.high)
    parts = [_numbers_at(graph, points[at : at + _PART]) for at in range(0, len(points), _PART)]
    refused = next((part for part in parts if isinstance(part, MatchFailure)), None)
    if refused is not None:
        return refused
    found = np.concatenate([part for part in parts if not isinstance(part, MatchFailure)])
    if np.any(np.diff(found, axis=0) < 0):
        return MatchFailure("must not fall where the numbers it depends on rise")
    minimum, maximum = int(found.min()), int(found.max())
    if maximum - minimum >= _VALUES:
        return MatchFailure(f"must have {_VALUES} values at most, but has {maximum - minimum + 1}")
    integers = np.arange(minimum + 1, maximum + 1, dtype=np.int64)
    counts = np.stack([np.searchsorted(column, integers) for column in found.T], axis=1)
    first = np.where(counts == len(points), high + 1, low + counts)
    first = np.where(first > whole.high, whole.high + 1, np.maximum(first, whole.low))
    return GraphThresholds(Thresholds(first, integers, whole.low, whole.high), minimum, maximum)
