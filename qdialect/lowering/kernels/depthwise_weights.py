"""The weights of a depthwise kernel as K groups of four taps, in as few products as hold them.

Weights less their zero points need nine bits; what is more than a signed byte holds is multiplied once more.  Where
products are summed in pairs, every pair keeps the bound of `qdialect.lowering.tiling.pair_sums`, which three large
weights of a row break.  Three columns leave a byte of each K group free: the middle tap stands in both pairs, each with
a part of its weight.  What neither pair holds of it, of all three rows, is one K group more that walks down the middle
column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.operands.packing import signed_parts
from qdialect.lowering.tiling.pair_sums import LARGEST, parts_that_fit

K_GROUP = 4
_SHARED = (2, 2)
"""Two loops that both go on by one tap walk three taps, the middle one twice."""
_LARGEST_BYTE = 127


@dataclass(frozen=True)
class KGroups:
    """Up to four taps of some rows of the kernel, as one product."""

    row: int
    column: int
    steps: tuple[int, ...]
    """Extents of the loops over the taps, each of which goes on by one tap."""
    taps: NDArray[np.int8]
    """[channels, rows, taps]."""
    is_vertical: bool = False
    """Whether the taps follow each other down a column."""


def k_groups_of(weights: NDArray[np.int32], *, in_pairs: bool) -> list[KGroups]:
    """K groups that add up to `weights`, [channels, height, width]; `in_pairs` says how their products are summed."""
    if in_pairs:
        return list(_pairs(weights))
    whole, *remainder = signed_parts(weights)
    if weights.shape[2] == K_GROUP - 1 and len(remainder) == 1 and not remainder[0][:, :, ::2].any():
        both = np.stack([whole[:, :, 0], whole[:, :, 1], remainder[0][:, :, 1], whole[:, :, 2]], axis=2)
        return [KGroups(0, 0, _SHARED, both)]
    return list(_by_rows([whole, *remainder]))


def _pairs(weights: NDArray[np.int32]) -> Iterator[KGroups]:
    """K groups of which every pair keeps the bound."""
    _, height, width = weights.shape
    if width != K_GROUP - 1:
        yield from _by_rows(parts_that_fit(weights.astype(np.int16)), in_pairs=True)
        return
    taps, spare = _middle_twice(weights)
    if height != K_GROUP - 1:
        taps[:, :, 1] += spare
        spare = np.zeros_like(spare)
    yield from _by_rows(parts_that_fit(taps.astype(np.int16)), is_shared=True)
    if spare.any():
        down, beyond = _middle_twice(spare[:, None])
        down[:, :, 1] += beyond
        yield from (KGroups(0, 1, _SHARED, part, True) for part in parts_that_fit(down.astype(np.int16)))


def _by_rows(parts: list[NDArray[np.int8]], *, is_shared: bool = False, in_pairs: bool = False) -> Iterator[KGroups]:
    """The first part as it is, and of the others the rows that are not zero, or all where a row is one tap."""
    whole, *remainder = parts
    _, height, width = whole.shape
    step = height if width == 1 else 1
    rows = [(whole, 0, height), *((rest, row, row + step) for rest, row in product(remainder, range(0, height, step)))]
    for part, row, end in rows:
        for column, last in pairwise(_columns(width, is_single=end - row == 1 and not in_pairs)):
            taps = part[:, row:end, column:last]
            if part is whole or taps.any():
                yield KGroups(row, column, _SHARED if is_shared else taps.shape[2:], taps)


def _columns(width: int, *, is_single: bool) -> list[int]:
    """Where the K groups of some rows begin, and their end.

    One tap of a single row is no product that is summed: the last two K groups share their five.
    """
    starts = list(range(0, width, K_GROUP))
    if is_single and width % K_GROUP == 1 and width > 1:
        starts[-1] -= 1
    return [*starts, width]


def _middle_twice(taps: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Three taps [..., 3] as the pairs (first, middle) and (middle, last), [..., 4], and what neither pair holds."""
    first, middle, last = np.moveaxis(taps, -1, 0)
    own = _within_bound(middle, first)
    other = _within_bound(middle - own, last)
    return np.stack([first, own, other, last], axis=-1), middle - own - other


def _within_bound(tap: NDArray[np.int32], beside: NDArray[np.int32]) -> NDArray[np.int32]:
    """As much of `tap` as keeps the bound with the other tap of its pair."""
    high = (LARGEST - beside.clip(min=0)).clip(0, _LARGEST_BYTE)
    low = (-LARGEST - beside.clip(max=0)).clip(max=0)
    return tap.clip(low, high)
