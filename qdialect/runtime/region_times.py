"""How long each region of a partitioned network takes."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from qdialect.runtime.base import Array
from qdialect.runtime.partitioned import PartitionedExecutable

_WARM_UP_CALLS = 3
_MIN_CALLS = 5


def region_times(executable: PartitionedExecutable, inputs: Sequence[Array], seconds: float = 0.5) -> tuple[float, ...]:
    """The median seconds of each region, in order, over calls for so many `seconds`.

    Raises `InputError` where `inputs` do not fit.
    """
    for _ in range(_WARM_UP_CALLS):
        executable.times(inputs)
    found: list[list[float]] = []
    end = time.perf_counter() + seconds
    while len(found) < _MIN_CALLS or time.perf_counter() < end:
        found.append(executable.times(inputs))
    return tuple(float(one) for one in np.median(found, axis=0))
