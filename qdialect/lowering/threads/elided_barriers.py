"""Barriers that are not needed: each part reads only what the same part has written.

A part of a call and the part of the same number of another call run on the same thread, however many threads there
are, as long as no thread takes chunks from another. So rows that go through one layer after the other, each thread
having its own, need no barrier in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qdialect.lowering.threads.chunks import Division
from qdialect.lowering.threads.part_touches import part_touches
from qdialect.lowering.threads.schedule import ScheduledCall, Touch

_MAX_PAIRS = 64
"""Pairs of runs that are compared byte by byte for two calls; where more of them may meet, the barrier stays."""


@dataclass(frozen=True)
class _Running:
    """A call since the last barrier, and what each of the threads touches in it; None where that is not fixed."""

    scheduled: ScheduledCall
    touches: Mapping[int, Sequence[Touch]] | None


def elide_barriers(
    calls: Iterable[ScheduledCall], divisions: Mapping[str, Division], threads: int
) -> Iterator[ScheduledCall]:
    """The `calls` in their order, with those barriers alone that they need."""
    running: list[_Running] = []
    for scheduled in calls:
        own = _Running(scheduled, _touches(scheduled, divisions, threads))
        waits = any(_needs_barrier(before, own) for before in running)
        running = [own] if waits else [*running, own]
        yield replace(scheduled, waits=waits)


def _touches(
    scheduled: ScheduledCall, divisions: Mapping[str, Division], threads: int
) -> Mapping[int, Sequence[Touch]] | None:
    if scheduled.thread is not None:
        return {scheduled.thread: scheduled.call.touches}
    division = divisions[scheduled.call.kernel.name]
    if division.chunks > 1:
        return None
    return {part: part_touches(scheduled.call, division, part) for part in range(threads)}


def _needs_barrier(before: _Running, after: _Running) -> bool:
    """Whether a thread touches in one call what another one does in the other, and one of them writes it."""
    if not before.scheduled.call.conflicts(after.scheduled.call):
        return False
    if before.touches is None or after.touches is None:
        return True
    pairs = _overlapping(before.touches, after.touches)
    return len(pairs) > _MAX_PAIRS or any(one.conflicts(other) for one, other in pairs)


def _overlapping(
    before: Mapping[int, Sequence[Touch]], after: Mapping[int, Sequence[Touch]]
) -> list[tuple[Touch, Touch]]:
    """Touches of different threads that conflict if all between their first byte and their last one counts."""
    one, other = _flat(before), _flat(after)
    rows, columns = _table(one)[:, :, None], _table(other)[:, None, :]
    thread, block, is_write, start, end = range(5)
    meets = (rows[start] < columns[end]) & (columns[start] < rows[end]) & (rows[block] == columns[block])
    found = meets & (rows[thread] != columns[thread]) & ((rows[is_write] | columns[is_write]) == 1)
    return [(one[i][1], other[j][1]) for i, j in np.argwhere(found)]


def _flat(touches: Mapping[int, Sequence[Touch]]) -> list[tuple[int, Touch]]:
    return [(thread, touch) for thread, found in touches.items() for touch in found]


def _table(touches: Sequence[tuple[int, Touch]]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """A row each for the thread, the block, whether it is written, the first byte and the one behind the last."""
    rows = [(thread, touch.block, touch.is_write, touch.bytes.start, touch.bytes.end) for thread, touch in touches]
    return np.array(rows, np.int64).reshape(-1, 5).T
