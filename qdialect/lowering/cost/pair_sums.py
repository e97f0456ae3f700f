"""Sums of two products of bytes that 16 bits hold, and orders of channels in which the weights keep that bound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Sums of two products of bytes that 16 bits hold, which `vpmaddubsw` adds without saturating.
#
# With data x in 0..255 and signed weights a and b of two taps that lie side by side,
#
#   -255 (max(-a, 0) + max(-b, 0)) <= x a + y b <= 255 (max(a, 0) + max(b, 0)),
#
# which 16 bits hold for every x and y just where each of the two sums of weights is at most 128: 255 * 128 = 32640, and
# 255 * 129 = 32895 is more than 32767.  Weights of different signs never exceed it.  What is beyond goes into parts of
# its own, each of which keeps the bound, as the remainder of weights that are more than a signed byte does.
#
# The same bound of all taps would allow a sum of 16 bits to go on over several pairs; trained weights rarely keep it.

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


# An order of channels in which the weights of neighbours keep the bound of products that are summed in pairs.
#
# Two channels conflict where any filter has weights of them at one tap that exceed the bound of
# `qdialect.lowering.cost.pair_sums`.  Channels without a conflict are the edges of a graph, and a matching of it is an
# order: the two of each edge become neighbours.  It is found by a greedy search, the channels with the fewest partners
# first, and augmented by paths of three edges, which leaves few channels over where each has several partners.

_FEW_PARTNERS = 4
"""Partners of a channel on average, below which many find none."""
_BETWEEN_CHECKS = 16
"""Filters."""
_K_GROUP = 4


def conflicts(filters: Iterable[NDArray[np.int16]], channels: int) -> NDArray[np.bool_] | None:
    """Which channels conflict, bool[channels, channels], for filters of int16[taps, channels]; None if nearly all."""
    found = np.zeros((channels, channels), np.bool_)
    for index, taps in enumerate(filters):
        _mark(found, taps.clip(min=0))
        _mark(found, (-taps).clip(min=0))
        if index % _BETWEEN_CHECKS == 0 and (~found).sum() < _FEW_PARTNERS * channels:
            return None
    return found | found.T


def _mark(found: NDArray[np.bool_], magnitudes: NDArray[np.int16]) -> None:
    # One of two that exceed the bound exceeds half of it.
    for row in magnitudes[magnitudes.max(axis=1) > LARGEST // 2]:
        large = np.flatnonzero(row > LARGEST // 2)
        found[large] |= row > (LARGEST - row[large])[:, None]


def paired_order(conflict: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """The channels in an order with fewer K groups that have a conflict than there are; None where it has not fewer.

    `conflict` is symmetric, bool[channels, channels] of an even number.
    """
    own = np.arange(len(conflict))
    now = _conflicting_k_groups(conflict, own)
    if not now:
        return None
    mates = _matching(~conflict & ~np.eye(len(conflict), dtype=np.bool_))
    firsts = np.flatnonzero(mates > own)
    # Those without a partner stand together, so that few K groups have them.
    order = np.concatenate([np.stack([firsts, mates[firsts]], axis=-1).ravel(), np.flatnonzero(mates < 0)])
    return order if _conflicting_k_groups(conflict, order) < now else None


def _conflicting_k_groups(conflict: NDArray[np.bool_], order: NDArray[Any]) -> int:
    pairs = conflict[order[0::2], order[1::2]]
    return int(np.pad(pairs, (0, len(pairs) % 2)).reshape(-1, _K_GROUP // 2).any(axis=-1).sum())


def _matching(fits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The partner of each channel, -1 for those without one."""
    mates = np.full(len(fits), -1, np.int64)
    partners = fits.sum(axis=1)
    for channel in np.argsort(partners, kind="stable").tolist():
        free = np.flatnonzero(fits[channel] & (mates < 0))
        if mates[channel] < 0 and free.size:
            _join(mates, channel, int(free[np.argmin(partners[free])]))
    for channel in np.flatnonzero(mates < 0).tolist():
        if mates[channel] < 0:
            _augment(fits, mates, channel)
    return mates


def _augment(fits: NDArray[np.bool_], mates: NDArray[np.int64], channel: int) -> None:
    """Pair `channel` and another one that is left with the two of a pair, if both pairs fit."""
    matched = np.flatnonzero(mates >= 0)
    for other in np.flatnonzero(mates < 0).tolist():
        between = matched[fits[channel, matched] & fits[other, mates[matched]]]
        if other != channel and between.size:
            first = int(between[0])
            _join(mates, other, int(mates[first]))
            _join(mates, channel, first)
            return


def _join(mates: NDArray[np.int64], first: int, second: int) -> None:
    mates[first], mates[second] = second, first
