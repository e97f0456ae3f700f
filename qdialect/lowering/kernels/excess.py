"""Weights that are more than s8 holds: the quads of a window where a channel has some, each a small product of its own.

Codes of asymmetric weights minus their zero point need nine bits, but few of them do: those of the channel that has the
widest range.  They are clipped, and what is cut off is multiplied once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_QUAD = 4


@dataclass(frozen=True)
class ExcessQuad:
    """Where a quad lies, in elements from the window's first, and its excess, [channels, 4]."""

    offset: int
    taps: NDArray[np.int8]


def excess_quads(taps: NDArray[np.int8], strides: Sequence[int]) -> list[ExcessQuad]:
    """The quads of `taps`, [channels, K..., run], that are not zero; `strides` are those of the axes K."""
    channels, *outer, run = taps.shape
    padded = np.zeros((channels, *outer, -(-run // _QUAD) * _QUAD), dtype=np.int8)
    padded[..., :run] = taps
    quads = padded.reshape(channels, *outer, -1, _QUAD)
    steps = (*strides, _QUAD)
    found: list[ExcessQuad] = []
    for place in np.argwhere(quads.any(axis=(0, -1))):
        offset = sum(int(index) * step for index, step in zip(place, steps, strict=True))
        found.append(ExcessQuad(offset, quads[:, *place, :]))
    return found
