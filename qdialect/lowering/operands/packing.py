"""Weights, zero points and bias in the form the kernels read.

With x stored unsigned (zero point z_x) and w' = w - d, d chosen so that w' fits s8, z' = z_w - d:

  sum (x - z_x)(w - z_w) = sum (x - z_x)(w' - z')
                         = sum x w'  -  z_x sum w'  -  z' sum x  +  K z_x z'

The second and fourth term depend on the channel alone and go into the bias; the third needs the sum of the window's
data, one more column of ones or a kernel of its own, and vanishes where z' = 0: always for symmetric weights, and for
others that still fit s8 minus their zero point.  Where only few weights do not fit, they are clipped, and the clipped
remainder is a second product over the few taps that have one (outlier correction).  Padding counts as z_x, so the sums
over the window are the same at the border.  All arithmetic is modulo 2^32, as the accumulators' own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math import accumulator_range

T = TypeVar("T", np.int8, np.int16)
# Of a vector of 32-bit lanes.
_LANES = 16
# Channels of the widest tile, which shares a column of ones.
_TILE = 64


@dataclass(frozen=True)
class CenteredWeights:
    """Weights as s8 with what is left of their zero points, [OC, ...]; `zero_points` is int32[OC]."""

    values: NDArray[np.int8]
    zero_points: NDArray[np.int32]


def center(weight: NDArray[Any], zero_points: tuple[int, ...]) -> CenteredWeights:
    """s8 weights [OC, ...]; the zero point of a channel that fits s8 without it becomes 0."""
    channels = weight.shape[0]
    flat = weight.reshape(channels, -1)
    points = np.broadcast_to(np.asarray(zero_points, dtype=np.int32), (channels,))
    fits = (flat.min(axis=1) - points >= -128) & (flat.max(axis=1) - points <= 127)
    shift = np.where(fits, points, 128 if weight.dtype == np.uint8 else 0).astype(np.int32)
    # Modulo 256: the differences fit, and weights of a hundred megabytes are not to become four times as many.
    values = flat.view(np.uint8)
    if shift.any():
        values = values - shift.astype(np.uint8)[:, None]
    return CenteredWeights(values.view(np.int8).reshape(weight.shape), points - shift)


def clip_outliers(weights: CenteredWeights) -> tuple[CenteredWeights, NDArray[np.int8]]:
    """Weights without zero points, clipped to s8, and the remainder [OC, ...] to add to them.

    Where too many taps would have a remainder, or one exceeds s8, the weights as they are and a remainder of zeros.
    """
    channels = weights.values.shape[0]
    nothing = np.broadcast_to(np.int8(0), weights.values.shape)
    if not weights.zero_points.any():
        return weights, nothing
    points = weights.zero_points.astype(np.int16).reshape(channels, *[1] * (weights.values.ndim - 1))
    exact = weights.values - points
    values = np.clip(exact, -128, 127)
    remainder = exact - values
    if remainder.max() > 127 or _outlier_cost(remainder) > _sum_cost(channels, exact[0].size):
        return weights, nothing
    return CenteredWeights(values.astype(np.int8), np.zeros_like(weights.zero_points)), remainder.astype(np.int8)


def _outlier_cost(remainder: NDArray[np.int16]) -> float:
    """Instructions a pixel: for each K group with a remainder a broadcast, and a product for each channel vector."""
    *_, contiguous = remainder.shape
    taps = remainder.any(axis=0).reshape(-1, contiguous)
    k_groups = np.pad(taps, ((0, 0), (0, -contiguous % 4))).reshape(-1, 4).any(axis=1)
    return float(np.count_nonzero(k_groups) * (1 + remainder.shape[0] / _LANES))


def _sum_cost(channels: int, taps: int) -> float:
    """Instructions a pixel: a product for each K group and tile, or sums of 64 bytes at a time; then the correction."""
    column = -(-taps // 4) * -(-channels // _TILE)
    return min(column, _LANES + taps / 64) + 1.5 * channels / _LANES


def folded_bias(weights: CenteredWeights, bias: NDArray[np.int32], input_zero_point: int) -> NDArray[np.int32]:
    """bias - z_x sum w' + K z_x z', int32[OC], modulo 2^32; `input_zero_point` is that of stored values."""
    channels = weights.values.shape[0]
    flat = weights.values.reshape(channels, -1)
    points = weights.zero_points.astype(np.int64)
    folded = bias.astype(np.int64) - input_zero_point * (flat.sum(axis=1, dtype=np.int64) - flat.shape[1] * points)
    return folded.astype(np.uint64).astype(np.uint32).view(np.int32)


def accumulator_bounds(
    weights: CenteredWeights, bias: NDArray[np.int32], input_zero_point: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The smallest and the largest true accumulator of each channel, int64[OC]: any stored value on any tap."""
    channels = weights.values.shape[0]
    flat = weights.values.reshape(channels, -1)
    exact = flat - weights.zero_points.astype(np.int16)[:, None] if weights.zero_points.any() else flat
    return accumulator_range(exact, bias, (-input_zero_point, 255 - input_zero_point))


def signed_parts(weights: NDArray[np.int32]) -> NDArray[np.int8]:
    """As few s8 arrays as sum up to `weights`, [parts, ...]; at least one."""
    parts: list[NDArray[np.int8]] = []
    while not parts or weights.any():
        parts.append(np.clip(weights, -128, 127).astype(np.int8))
        weights = weights - parts[-1]
    return np.stack(parts)


def pack_k_groups(taps: NDArray[T], lanes: int, vectors: int, k_group: int = 4) -> NDArray[T]:
    """[N, K..., k] to [N tiles, K..., k/g, vectors, lanes, g], zero-padded along N and k, the contiguous reduction.

    So one vector load holds `lanes` channels times a K group of g taps, what one dot-product instruction eats, and the
    loads of a register tile's whole reduction are one contiguous stream.
    """
    channels, *outer, contiguous = taps.shape
    tile = lanes * vectors
    tiles, k_groups = -(-channels // tile), -(-contiguous // k_group)
    filled = taps
    if (tiles * tile, k_groups * k_group) != (channels, contiguous):
        filled = np.zeros((tiles * tile, *outer, k_groups * k_group), dtype=taps.dtype)
        filled[:channels, ..., :contiguous] = taps
    split = filled.reshape(tiles, vectors, lanes, *outer, k_groups, k_group)
    order = (0, *range(3, 4 + len(outer)), 1, 2, 4 + len(outer))
    return np.ascontiguousarray(split.transpose(order))


def widened_k_groups(packed: NDArray[np.int8]) -> NDArray[np.int16]:
    """Packed K groups [..., lanes, 4] as words [..., 2, lanes, 2]: of each lane taps 0 and 2, then taps 1 and 3.

    What multiplies words makes words of the data's bytes in a register, where a lane holds four of them: of the even
    ones by a mask, of the odd ones by a shift.
    """
    pairs = packed.astype(np.int16).reshape(*packed.shape[:-1], 2, 2)
    return np.ascontiguousarray(np.moveaxis(pairs, -1, -3))


def pad_channels(values: NDArray[Any], lanes: int) -> NDArray[Any]:
    """A per-channel array as one of `lanes` entries; a single entry is repeated for each channel."""
    padded = np.zeros(lanes, dtype=values.dtype)
    padded[: len(values)] = values
    return padded
