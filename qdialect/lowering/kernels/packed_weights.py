"""Constant weights in the form that the micro-kernels of a contraction read.

With stored data x, a micro-kernel computes for each of its channels

  bias + sum x weights + sum over the remainder's K groups x remainder - zero_points * sum x ones

which is the bias plus the sum of x (w - z), the weights less their zero points (see
`qdialect.lowering.operands.packing`).  Where all channels have one zero point, it stands in place of the ones, so that
nothing is left to multiply.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernels.channel_tiles import ChannelTiles
from qdialect.lowering.kernels.groups import ChannelGroup
from qdialect.lowering.kernels.reduction_axes import ReductionAxes
from qdialect.lowering.kernels.weight_remainder import RemainderGroup, remainder_groups
from qdialect.lowering.operands.packing import CenteredWeights, pack_k_groups
from qdialect.lowering.program import BufferSlot
from qdialect.lowering.tiling.pair_sums import parts_that_fit

_S8 = np.iinfo(np.int8)

MAX_K_GROUPS = 16
"""K groups of a remainder of pairs: each one is written out for every register tile."""


@dataclass(frozen=True)
class ContractionWeights:
    """Weights [OC, KH, KW, IC / groups] less what clipping took from them, that remainder, and the bias int32[OC]."""

    centered: CenteredWeights
    remainder: NDArray[np.int8]
    bias: NDArray[np.int32]


@dataclass(frozen=True)
class ZeroPointCorrection:
    """What is left of the zero points of weights, and the ones whose products with a window are its sum.

    `zero_points` are int32[group, tile, vector, lane].  `ones` are packed as weights are where groups share a block,
    so that each channel sees other data; elsewhere they are int8[outer axes, K group, lane, 4], for all channels.
    Where zero points are in the ones, `zero_points` is None.
    """

    zero_points: NDArray[np.int32] | None
    ones: NDArray[np.int8]


@dataclass(frozen=True)
class PackedRemainder:
    """A K group of the clipped remainder: its offset in the window, in elements; int8[group, tile, vector, lane, 4]."""

    offset: int
    weights: NDArray[np.int8]


@dataclass(frozen=True)
class PackedWeights:
    """The weights of one block of channels; the group axis exists only where there are several groups."""

    weights: NDArray[np.int8]
    """[group, tile, outer axes, K group, vector, lane, 4]."""
    bias: NDArray[np.int32]
    """[group, tile, vector, lane]."""
    remainder: tuple[PackedRemainder, ...]
    """The K groups in which a channel of the block has a clipped remainder."""
    correction: ZeroPointCorrection | None
    """None where every channel of the block has the zero point 0."""


@dataclass(frozen=True)
class GatheredTaps:
    """K groups of gathered taps, how many taps of each row they have, and what they are multiplied by."""

    slot: BufferSlot
    """[K group, pixel, 4]."""
    per_row: int
    k_groups: tuple[RemainderGroup, ...]
    """Where each product finds its K group of the first pixel, and its weights."""


def pack_weights(
    weights: ContractionWeights, tiles: ChannelTiles, axes: ReductionAxes, factor: int = 1
) -> PackedWeights:
    """The weights of the channels of `tiles`, whose taps lie along `axes`; `factor` is that of `correction_of`."""
    taps, *remainders = _parts(weights, tiles.group, axes, in_pairs=tiles.block.in_pairs)
    return PackedWeights(
        tiles.packed(taps),
        tiles.per_channel(weights.bias),
        tuple(k_group for part in remainders for k_group in _packed_remainder(part, tiles, axes)),
        correction_of(weights.centered.zero_points, tiles, axes, factor),
    )


def _parts(
    weights: ContractionWeights, group: ChannelGroup, axes: ReductionAxes, *, in_pairs: bool
) -> list[NDArray[np.int8]]:
    """Weights [channels of the groups, extents...] and the remainders that add up with them to what they were."""
    parts = [axes.ordered(group.taps(array)) for array in (weights.centered.values, weights.remainder)]
    return parts_that_fit(parts[0].astype(np.int16) + parts[1]) if in_pairs else parts


def remainder_k_groups(weights: ContractionWeights, group: ChannelGroup, axes: ReductionAxes) -> int:
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
    ones = _packed_ones(tiles, axes) * np.int8(factor)
    return ZeroPointCorrection(own if factor == 1 else None, ones) if own.any() else None


def _packed_remainder(taps: NDArray[np.int8], tiles: ChannelTiles, axes: ReductionAxes) -> tuple[PackedRemainder, ...]:
    """The K groups where `taps`, [channels of the groups, extents...], of the block's channels are not zero."""
    if not taps.any():
        return ()
    own = np.zeros_like(taps)
    rows = (tiles.indices - tiles.group.start).clip(max=len(taps) - 1).ravel()
    own[rows] = taps[rows]
    found = [(k_group.offset, tiles.packed(k_group.taps)) for k_group in remainder_groups(own, axes.strides)]
    # One K group needs no loop over K groups.
    return tuple(PackedRemainder(offset, packed.squeeze(axis=-4)) for offset, packed in found)


def _packed_ones(tiles: ChannelTiles, axes: ReductionAxes) -> NDArray[np.int8]:
    if tiles.group.per_block > 1:
        return tiles.packed(axes.ordered(axes.present))
    ones = np.repeat(axes.ordered(axes.present[:1]), tiles.block.lanes, axis=0)
    # One tile of one vector.
    return pack_k_groups(ones, tiles.block.lanes, 1)[0].squeeze(axis=-3)
