"""Sums of two products of bytes that 16 bits hold, which `vpmaddubsw` adds without saturating.

With data x in 0..255 and signed weights a and b of two taps that lie side by side,

  -255 (max(-a, 0) + max(-b, 0)) <= x a + y b <= 255 (max(a, 0) + max(b, 0)),

which 16 bits hold for every x and y just where each of the two sums of weights is at most 128: 255 * 128 = 32640, and
255 * 129 = 32895 is more than 32767.  Weights of different signs never exceed it.  What is beyond goes into parts of
its own, each of which keeps the bound, as the remainder of weights that are more than a signed byte does.

The same bound of all taps would allow a sum of 16 bits to go on over several pairs; trained weights rarely keep it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 128
"""The maximum of the sum of a pair's weights of one sign."""
_LARGEST_BYTE = 127
_PAIR = 2


def sums_fit(taps: NDArray[Any]) -> bool:
    """Whether every pair of `taps`, two after the other of int8[..., even], keeps the bound."""
    pairs = taps.reshape(-1, _PAIR).astype(np.int16)
    above, below = pairs.clip(min=0).sum(axis=1), (-pairs).clip(min=0).sum(axis=1)
    return int(max(above.max(initial=0), below.max(initial=0))) <= LARGEST


def parts_that_fit(taps: NDArray[np.int16]) -> list[NDArray[np.int8]]:
    """As few int8[..., contiguous] as sum up to `taps`, of each of which every pair keeps the bound; at least one."""
    parts: list[NDArray[np.int8]] = []
    while not parts or taps.any():
        parts.append(_largest_part(taps))
        taps = taps - parts[-1]
    return parts


def _largest_part(taps: NDArray[np.int16]) -> NDArray[np.int8]:
    """Of every pair the first tap as far as a byte holds it, and of the second one what the bound leaves."""
    *_, contiguous = taps.shape
    padded = np.pad(taps, [(0, 0)] * (taps.ndim - 1) + [(0, contiguous % _PAIR)])
    first, second = padded[..., 0::2], padded[..., 1::2]
    own = np.clip(first, -LARGEST, _LARGEST_BYTE)
    # A tap of the other sign does not count.
    high = np.minimum(LARGEST - own.clip(min=0), _LARGEST_BYTE)
    low = -LARGEST - own.clip(max=0)
    found = np.stack([own, np.clip(second, low, high)], axis=-1).reshape(padded.shape)
    return found[..., :contiguous].astype(np.int8)
