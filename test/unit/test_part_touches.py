"""What the parts of a call touch: all of what the call does, and nothing is written by two of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pytest
from threaded_networks import network

from qdialect import targets
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.threads import divided_network
from qdialect.lowering.threads.chunks import Division
from qdialect.lowering.threads.region import part_touches
from qdialect.lowering.threads.schedule import NetworkCall, ScheduledCall, Touch


def mask(touches: Sequence[Touch], block: int, end: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """How many of `touches` have each of the first `end` bytes of `block`."""
    found = np.zeros(end, np.int64)
    for touch in touches:
        if touch.block == block:
            found[touch.bytes.start : touch.bytes.end] += touch.bytes.mask(touch.bytes.end)[touch.bytes.start :]
    return found


def check_call(call: NetworkCall, division: Division, threads: int) -> None:
    """Assert for each block and for reads and writes that parts touch what the call touches."""
    parts = [part_touches(call, division, part) for part in range(threads)]
    for is_write in (False, True):
        whole = [touch for touch in call.touches if touch.is_write is is_write and is_shared(division, touch)]
        for block in {touch.block for touch in whole}:
            end = max(touch.bytes.end for touch in whole)
            owners = [mask([t for t in own if t.is_write is is_write], block, end) > 0 for own in parts]
            assert (np.logical_or.reduce(owners) == (mask(whole, block, end) > 0)).all()
            assert not is_write or np.sum(owners, axis=0).max() == 1


def is_shared(division: Division, touch: Touch) -> bool:
    return touch.argument not in division.kernel.scratch


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("kind", ["convolutional", "transformer"])
def test_parts_touch_what_the_call_touches(kind: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []

    def check(calls: Iterable[ScheduledCall], divisions: Mapping[str, Division], count: int) -> Iterator[ScheduledCall]:
        for scheduled in calls:
            if scheduled.thread is None:
                check_call(scheduled.call, divisions[scheduled.call.kernel.name], count)
                checked.append(scheduled.call.kernel.name)
            yield scheduled

    monkeypatch.setattr(divided_network, "elide_barriers", check)
    lower(network(kind), targets.resolve("avx512vbmi"), Phase.VECTOR, threads=threads, min_cycles=500)
    assert len(checked) >= 5
