"""Outlier correction: the K groups of a window where weights exceed s8, each a small product of its own.

Asymmetric weights minus their zero point need nine bits, but few of them do: those of the channel that has the widest
range.  They are clipped to s8, and the remainder is multiplied once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_K_GROUP = 4


@dataclass(frozen=True)
class RemainderGroup:
    """Where a K group lies, in elements from the window's first, and its remainder, [channels, 4]."""

    offset: int
    taps: NDArray[np.int8]


def remainder_groups(taps: NDArray[np.int8], strides: Sequence[int]) -> list[RemainderGroup]:
    """The K groups of `taps`, [channels, K..., contiguous], that are not zero; `strides` are those of the axes K."""
    channels, *outer, contiguous = taps.shape
    padded = np.zeros((channels, *outer, -(-contiguous // _K_GROUP) * _K_GROUP), dtype=np.int8)
    padded[..., :contiguous] = taps
    k_groups = padded.reshape(channels, *outer, -1, _K_GROUP)
    steps = (*strides, _K_GROUP)
    found: list[RemainderGroup] = []
    for position in np.argwhere(k_groups.any(axis=(0, -1))):
        offset = sum(int(index) * step for index, step in zip(position, steps, strict=True))
        found.append(RemainderGroup(offset, k_groups[:, *position, :]))
    return found
