"""Sums of products of words that are added up as floats, where these additions take no units of the products.

The bits of a number n in 0..2^24, read as a float32 number, are n times 2^-149: a subnormal number below 2^23, and a
normal one of the same step from there to 2^24.  So adding up such numbers as floats adds up the integers, exactly, as
long as no sum exceeds 2^24.  With data x in 0..255, weights w, and c = -min(w, 0),

  sum x w = sum x (w + c) - c sum x,

where nothing on the right is negative.  The sums of x are those of a window, the same for all channels.  A run of taps
of which every channel has sum 255 (w + c) <= 2^24 is added up from zero; where all taps exceed that, they are cut into
runs of one length, and the sums of these are added as integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST = 2**24
_LARGEST_BYTE = 255
_PAIR = 2
_SHORTEST = 64
"""Taps of a run: the sums of fewer cost as much as their products save."""


def shift_of(weights: NDArray[Any]) -> int:
    """What is added to all weights so that none is negative."""
    return -min(int(weights.min(initial=0)), 0)


def sums_fit(runs: NDArray[Any], axes: tuple[int, ...] = (-1,)) -> bool:
    """Whether bytes times weights `runs` may be added up as floats along `axes`."""
    total = runs.sum(axis=axes, dtype=np.int64)
    return int(runs.min(initial=0)) >= 0 and _LARGEST_BYTE * int(total.max(initial=0)) <= _LARGEST


def runs_of(taps: NDArray[Any]) -> int | None:
    """Into how few runs the last axis of weights [channels, ..., taps] may be cut; None where none keep the bound."""
    *outer, count = taps.shape
    for runs in range(1, count // _SHORTEST + 1):
        if count % (runs * _PAIR) == 0 and sums_fit(taps.reshape(*outer, runs, count // runs)):
            return runs
    return None
