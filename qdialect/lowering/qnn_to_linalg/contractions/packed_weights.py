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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import accumulator_range
from qdialect.lowering.cost.register_tiles import Layout, parts_that_fit
from qdialect.lowering.cost.strategy import ChannelBlock
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ChannelGroup, ReductionAxes

T = TypeVar("T", np.int8, np.int16)
# Of a vector of 32-bit lanes.
_LANES = 16
# Channels of the widest tile, which shares a column of ones.
_TILE = 64


@dataclass(frozen=True)
class CenteredWeights:
    """Weights as s8 with what is left of their zero points, [OC, ...]; `zero_points` is int32[OC].  Or f32 weights."""

    values: NDArray[Any]
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


@dataclass(frozen=True)
class ConstantWeights:
    """Weights [OC, KH, KW, IC / groups] that are known, and what accumulators start at, int32[OC] or f32[OC]."""

    centered: CenteredWeights
    bias: NDArray[Any]
    k_group: int = 4
    """Taps of a K group: four bytes, two words or an f32 number."""
    first: int = 0
    """The first input channel that they meet."""

    @property
    def values(self) -> NDArray[np.int8]:
        """The weights without what is left of their zero points."""
        return self.centered.values

    @property
    def channels(self) -> int:
        return self.values.shape[0]

    @property
    def window(self) -> tuple[int, ...]:
        """Rows and columns of taps."""
        return self.values.shape[1:3]

    @property
    def size(self) -> int:
        """Weights of all channels that a pixel meets."""
        return self.values.size

    @property
    def zero_points(self) -> NDArray[np.int32]:
        """The rest of the zero points of clipped weights."""
        return self.clipped[0].zero_points

    @cached_property
    def clipped(self) -> tuple[CenteredWeights, NDArray[np.int8]]:
        """Weights less what clipping took from them, and that remainder."""
        return clip_outliers(self.centered)

    @property
    def exact(self) -> NDArray[np.int32]:
        """Of single channels, [OC, KH, KW], less their zero points: nine bits and a sign."""
        return self.values[:, :, :, 0].astype(np.int32) - self.centered.zero_points[:, None, None]


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


# Outlier correction: the K groups of a window where weights exceed s8, each a small product of its own.
#
# Asymmetric weights minus their zero point need nine bits, but few of them do: those of the channel that has the
# widest range.  They are clipped to s8, and the remainder is multiplied once more.

_K_GROUP, _WORDS = 4, 2


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


# The channels of one micro-kernel, and arrays of channels in their order.


@dataclass(frozen=True)
class ChannelTiles:
    """One block of the channels of one channel group, as [group, tile, vector, lane].

    The first axis exists only where there are several groups.
    """

    group: ChannelGroup
    block: ChannelBlock
    channels: int
    """Output channels of the op."""

    @property
    def has_group_axis(self) -> bool:
        """Whether the micro-kernel has a loop over groups."""
        return self.group.count > 1

    @property
    def has_channels_by_group(self) -> bool:
        """Whether each group of that loop has channels of its own."""
        return self.group.has_channels_by_group

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extents of [group, tile, vector, lane]."""
        return (*([self.group.count] if self.has_group_axis else []), *self._tile_sizes)

    @property
    def indices(self) -> NDArray[np.int64]:
        """The output channel of each [group, channel of the block]; one row where all groups share their channels."""
        starts = self.group.start + np.arange(self.group.channel_sets) * self.group.channels_out
        return starts[:, None] + (self.block.start + np.arange(self.block.channels))[None, :]

    def per_channel(self, values: NDArray[Any]) -> NDArray[Any]:
        """The entries of these channels, [group, tile, vector, lane], of an array with one entry or one a channel.

        A lane beyond the last channel repeats it, for that lane is never read.
        """
        last = self.channels - 1
        own = np.broadcast_to(values, (self.channels,))[np.minimum(self.indices, last)]
        return own.reshape(self.sizes if self.has_channels_by_group else self._tile_sizes)

    def packed(self, taps: NDArray[T], k_group: int = 4) -> NDArray[T]:
        """Taps [channels of the groups, K..., k] as [group, tile, K..., k / g, vector, lane, g], g taps a K group.

        Lanes beyond the last channel are zero.
        """
        chosen = _rows(taps, (self.indices - self.group.start).reshape(-1))
        by_group = chosen.reshape(self.group.channel_sets, self.block.channels, *taps.shape[1:])
        packed = [pack_k_groups(part, self.block.lanes, self.block.vectors, k_group) for part in by_group]
        return np.stack(packed) if self.has_group_axis else packed[0]

    @property
    def _tile_sizes(self) -> tuple[int, int, int]:
        return self.block.tiles, self.block.vectors, self.block.lanes


def _rows(taps: NDArray[T], rows: NDArray[np.int64]) -> NDArray[T]:
    """The rows of `taps`, zeros beyond the last; where they follow each other they are not copied."""
    known, first, last = taps.shape[0], int(rows[0]), int(rows[-1])
    if last < known and np.array_equal(rows, np.arange(first, last + 1)):
        return taps[first : last + 1]
    chosen = taps[np.minimum(rows, known - 1)]
    chosen[rows >= known] = 0
    return chosen


# Constant weights in the form that the micro-kernels of a contraction read.
#
# With stored data x, a micro-kernel computes for each of its channels
#
#   bias + sum x weights + sum over the remainder's K groups x remainder - zero_points * sum x ones
#
# which is the bias plus the sum of x (w - z), the weights less their zero points.  Where all channels have one zero
# point, it stands in place of the ones, so that nothing is left to multiply.

_S8 = np.iinfo(np.int8)

MAX_K_GROUPS = 16
"""K groups of a remainder of pairs: each one is written out for every register tile."""


@dataclass(frozen=True)
class ZeroPointCorrection:
    """The rest of the zero points of weights, and the ones whose products with a window are its sum.

    `zero_points` are int32[group, tile, vector, lane].  `ones` are packed as weights are where groups share a block,
    so that each channel sees other data; elsewhere they are int8[outer axes, K group, lane, 4], for all channels.
    Where zero points are in the ones, `zero_points` is None.
    """

    zero_points: NDArray[np.int32] | None
    ones: NDArray[np.int8]


@dataclass(frozen=True)
class PackedWeights:
    """The weights of one block of channels; the group axis exists only where there are several groups."""

    weights: NDArray[Any]
    """[group, tile, outer axes, K group, vector, lane, taps]."""
    bias: NDArray[np.int32]
    """[group, tile, vector, lane]."""
    remainder: tuple[RemainderGroup, ...]
    """The K groups in which a channel of the block has a clipped remainder, int8[group, tile, vector, lane, 4]."""
    correction: ZeroPointCorrection | None
    """None where every channel of the block has the zero point 0."""


def pack_weights(weights: ConstantWeights, tiles: ChannelTiles, axes: ReductionAxes, factor: int = 1) -> PackedWeights:
    """The weights of the channels of `tiles`, whose taps lie along `axes`; `factor` is that of `correction_of`."""
    taps, *remainders = _parts(weights, tiles.group, axes, in_pairs=tiles.block.layout is Layout.PAIRS)
    own: NDArray[Any] = taps.astype(np.int16) if weights.k_group == _WORDS else taps
    return PackedWeights(
        tiles.packed(own, weights.k_group),
        tiles.per_channel(weights.bias),
        tuple(k_group for part in remainders for k_group in _packed_remainder(part, tiles, axes)),
        correction_of(weights.zero_points, tiles, axes, factor),
    )


def _parts(
    weights: ConstantWeights, group: ChannelGroup, axes: ReductionAxes, *, in_pairs: bool
) -> list[NDArray[np.int8]]:
    """Weights [channels of the groups, extents...] and the remainders that add up with them to what they were."""
    parts = [axes.ordered(group.taps(array)) for array in (weights.clipped[0].values, weights.clipped[1])]
    return parts_that_fit(parts[0].astype(np.int16) + parts[1]) if in_pairs else parts


def remainder_k_groups(weights: ConstantWeights, group: ChannelGroup, axes: ReductionAxes) -> int:
    """K groups that are multiplied once more where products are summed in pairs."""
    _, *remainders = _parts(weights, group, axes, in_pairs=True)
    return sum(len(remainder_groups(part, axes.strides)) for part in remainders)


def factor_of_ones(zero_points: NDArray[np.int32]) -> int:
    """The one zero point of all channels, where it is a factor of a dot product; else 1."""
    point = int(zero_points.flat[0])
    return point if _S8.min <= point <= _S8.max and np.all(zero_points == point) else 1


def correction_of(
    zero_points: NDArray[np.int32], tiles: ChannelTiles, axes: ReductionAxes, factor: int = 1
) -> ZeroPointCorrection | None:
    """The correction by `zero_points`, which have one entry or one for each channel; None where all are 0.

    A `factor` of the ones other than 1 is the zero point of all channels.
    """
    own = tiles.per_channel(zero_points)
    if not own.any():
        return None
    return ZeroPointCorrection(own if factor == 1 else None, _packed_ones(tiles, axes) * np.int8(factor))


def _packed_remainder(taps: NDArray[np.int8], tiles: ChannelTiles, axes: ReductionAxes) -> tuple[RemainderGroup, ...]:
    """The K groups where `taps`, [channels of the groups, extents...], of the block's channels are not zero."""
    if not taps.any():
        return ()
    own = np.zeros_like(taps)
    rows = (tiles.indices - tiles.group.start).clip(max=len(taps) - 1).ravel()
    own[rows] = taps[rows]
    # One K group needs no loop over K groups.
    found = remainder_groups(own, axes.strides)
    return tuple(replace(k_group, taps=tiles.packed(k_group.taps).squeeze(axis=-4)) for k_group in found)


def _packed_ones(tiles: ChannelTiles, axes: ReductionAxes) -> NDArray[np.int8]:
    if tiles.group.per_block > 1:
        return tiles.packed(axes.ordered(axes.present))
    ones = np.repeat(axes.ordered(axes.present[:1]), tiles.block.lanes, axis=0)
    # One tile of one vector.
    return pack_k_groups(ones, tiles.block.lanes, 1)[0].squeeze(axis=-3)
