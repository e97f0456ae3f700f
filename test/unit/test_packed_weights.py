"""Packed weights, multiplied out as a micro-kernel does it, against the plain product; no kernel is made."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.lowering.cost.strategy import ChannelBlock
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import (
    ChannelTiles,
    ConstantWeights,
    PackedWeights,
    ZeroPointCorrection,
    center,
    correction_of,
    pack_weights,
)
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ChannelGroup, ReductionAxes, group_blocks

Weights = NDArray[Any]
Sums = dict[int, int]
"""The accumulator of each output channel."""


def reduction_axes(group: ChannelGroup, weights: Weights, groups: int = 1, spare: int = 0) -> ReductionAxes:
    """Taps along [KH, KW, lanes] of an image of 2 columns more than the kernel has; a 1x1 kernel is one axis."""
    _, height, width, depth = weights.shape
    pitch, lanes = depth * groups + spare, group.channels_in + spare
    present = group.taps(np.ones(weights.shape, np.int8))
    if height == width == 1:
        return ReductionAxes((lanes,), (), spare, present)
    return ReductionAxes((height, width, lanes), ((width + 2) * pitch, pitch), spare, present)


def window_of(data: NDArray[np.int64], start: int, axes: ReductionAxes) -> NDArray[np.int64]:
    """The stored data of a window as [K groups of all axes, 4], with what lies past each contiguous reduction."""
    strides = (*axes.strides, 4, 1)
    indices = np.indices((*axes.sizes, axes.k_groups, 4))
    offsets = start + sum(index * stride for index, stride in zip(indices, strides, strict=True))
    return data[offsets].reshape(-1, 4)


def multiplied_out(packed: PackedWeights, tiles: ChannelTiles, axes: ReductionAxes, data: NDArray[np.int64]) -> Sums:
    """What the micro-kernel of `tiles` computes at the start of `data`; lanes beyond the last channel are left out."""
    group, lead = tiles.group, (tiles.group.count,) if tiles.has_group_axis else ()
    shape = (group.count, tiles.block.tiles, *axes.sizes, axes.k_groups, tiles.block.vectors, tiles.block.lanes, 4)
    assert packed.weights.shape == shape[1 - len(lead) :]
    assert packed.weights.flags.c_contiguous
    assert packed.bias.shape == tiles.sizes
    tile = (tiles.block.tiles, -1, tiles.block.vectors, tiles.block.lanes, 4)
    weights, bias = packed.weights.reshape(group.count, *tile).astype(np.int64), packed.bias.reshape(group.count, -1)
    sums: Sums = {}
    for g in range(group.count):
        first = group.start_in + g * group.stride(0)
        window = window_of(data, first, axes)
        found = bias[g] + np.einsum("qi,tqvli->tvl", window, weights[g]).reshape(-1)
        for k_group in packed.remainder:
            assert k_group.taps.shape == (*tiles.sizes, 4)
            extra = k_group.taps.reshape(group.count, -1, 4)[g].astype(np.int64)
            found = found + extra @ data[first + k_group.offset :][:4]
        found = found - _corrected(packed.correction, tiles, g, window)
        for channel, value in zip(tiles.indices[g].tolist(), found.tolist(), strict=True):
            if channel < min(tiles.channels, group.start + (g + 1) * group.channels_out):
                sums[channel] = value
    return sums


def _corrected(
    correction: ZeroPointCorrection | None, tiles: ChannelTiles, g: int, window: NDArray[np.int64]
) -> NDArray[np.int64] | int:
    if correction is None:
        return 0
    assert correction.zero_points is not None, "of channels that differ"
    points, ones = correction.zero_points.reshape(tiles.group.count, -1)[g], correction.ones.astype(np.int64)
    if tiles.group.per_block > 1:
        block = tiles.block
        own = ones.reshape(tiles.group.count, block.tiles, -1, block.vectors, block.lanes, 4)[g]
        return points * np.einsum("qi,tqvli->tvl", window, own).reshape(-1)
    by_lane = np.einsum("qi,qli->l", window, ones.reshape(-1, tiles.block.lanes, 4))
    return points * np.tile(by_lane, points.size // by_lane.size)


def plain_products(
    weights: Weights, points: tuple[int, ...], bias: NDArray[np.int32], groups: int, data: NDArray[np.int64], spare: int
) -> Sums:
    """bias + sum of x * (w - z) over the window at the start of `data`."""
    channels, height, width, depth = weights.shape
    pitch = depth * groups + spare
    exact = weights.astype(np.int64) - np.broadcast_to(points, (channels,)).reshape(-1, 1, 1, 1)
    sums: Sums = {}
    for channel in range(channels):
        start = channel // (channels // groups) * depth
        rows, columns = np.indices((height, width))
        offsets = (rows * (width + 2) + columns) * pitch
        window = data[offsets[:, :, None] + start + np.arange(depth)]
        sums[channel] = int(bias[channel]) + int((exact[channel] * window).sum())
    return sums


@st.composite
def layers(draw: st.DrawFn) -> tuple[Weights, tuple[int, ...], int, int]:
    """Weights [OC, KH, KW, IC / groups], their zero points, groups, and spare lanes of each tap."""
    groups = draw(st.sampled_from([1, 1, 2, 3, 9, 16]))
    depth, per_group = draw(st.integers(1, 7)), draw(st.integers(1, 11))
    height, width = draw(st.sampled_from([(1, 1), (1, 3), (3, 2)]))
    dtype = draw(st.sampled_from([np.int8, np.uint8]))
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    channels = groups * per_group
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["all", "ends", "outlier"]))
    if kind == "all":
        weights = rng.integers(low, high + 1, (channels, height, width, depth))
    elif kind == "ends":
        weights = rng.choice([low, high], (channels, height, width, depth))
    else:
        weights = np.full((channels, height, width, depth), (low + high) // 2)
        weights.reshape(-1)[rng.integers(weights.size, size=2)] = draw(st.sampled_from([low, high]))
    value = st.sampled_from([low, low + 1, (low + high) // 2, high])
    points = draw(st.lists(value, min_size=1, max_size=1) | st.lists(value, min_size=channels, max_size=channels))
    spare = draw(st.sampled_from([0, 1, 3])) if groups == 1 else 0
    return weights.astype(dtype), tuple(points), groups, spare


@given(layers(), st.sampled_from([4, 8, 16]), st.integers(1, 4))
def test_packed_weights_give_the_plain_product(
    layer: tuple[Weights, tuple[int, ...], int, int], lanes: int, vectors: int
) -> None:
    weights, points, groups, spare = layer
    channels, height, width, depth = weights.shape
    rng = np.random.default_rng(weights.size)
    bias = rng.integers(-(2**31), 2**31, len(weights)).astype(np.int32)
    # What lies in spare lanes and past the last tap is read, and must not count.
    size = int((height + 1) * (width + 3) * (depth * groups + spare + 8))
    data = rng.integers(0, 256, size).astype(np.int64)
    constant = ConstantWeights(center(weights, points), bias)
    found: Sums = {}
    for group in group_blocks(groups, depth * groups, channels):
        axes = reduction_axes(group, weights, groups, spare)
        for block in _blocks(group, lanes, vectors):
            tiles = ChannelTiles(group, block, channels)
            found |= multiplied_out(pack_weights(constant, tiles, axes), tiles, axes, data)
    assert found == plain_products(weights, points, bias, groups, data, spare)


def _blocks(group: ChannelGroup, lanes: int, vectors: int) -> list[ChannelBlock]:
    """Blocks that cover a group's channels: the second begins inside the group, and reaches past its end."""
    channels = group.channels_out
    if group.count > 1:
        return [ChannelBlock(start, 1, 1, 8) for start in range(0, channels, 8)]
    tile = lanes * vectors
    first = [ChannelBlock(0, channels // tile, vectors, lanes)] if channels >= tile else []
    rest = [ChannelBlock(channels // tile * tile, 1, vectors, lanes)] if channels % tile else []
    return first + rest


def test_a_layer_of_small_weights_needs_no_correction() -> None:
    tiles, axes, weights = _square(np.arange(64, dtype=np.int8), (3,))
    packed = pack_weights(weights, tiles, axes)
    assert packed.correction is None
    assert packed.remainder == ()


def test_an_outlier_is_one_k_group_of_the_remainder() -> None:
    values = np.full(64, 100, np.uint8)
    values[3 * 8 + 5] = 255
    tiles, axes, weights = _square(values, (100,))
    (k_group,) = pack_weights(weights, tiles, axes).remainder
    assert k_group.offset == 4
    assert k_group.taps.shape == (1, 1, 8, 4)
    assert {tuple(index): int(k_group.taps[*index]) for index in np.argwhere(k_group.taps)} == {(0, 0, 3, 1): 155 - 127}


def test_what_is_no_outlier_of_the_block_is_left_out() -> None:
    values = np.full((64, 64), 100, np.uint8)
    values[40, 9] = 255
    weights = ConstantWeights(center(values.reshape(64, 1, 1, 64), (100,)), np.zeros(64, np.int32))
    (group,) = group_blocks(1, 64, 64)
    axes = reduction_axes(group, values.reshape(64, 1, 1, 64))
    counts = [
        len(pack_weights(weights, ChannelTiles(group, ChannelBlock(start, 1, 2, 16), 64), axes).remainder)
        for start in (0, 32)
    ]
    assert counts == [0, 1]


def test_zero_points_of_another_block_need_no_correction_here() -> None:
    (group,) = group_blocks(1, 8, 32)
    points = np.zeros(32, np.int32)
    points[20] = -128
    axes = reduction_axes(group, np.zeros((32, 1, 1, 8), np.int8))
    first, second = (
        correction_of(points, ChannelTiles(group, ChannelBlock(start, 1, 1, 16), 32), axes) for start in (0, 16)
    )
    assert first is None
    assert second is not None
    assert second.zero_points is not None
    assert second.zero_points.tolist() == [[[-128 if lane == 4 else 0 for lane in range(16)]]]
    assert second.ones.shape == (2, 16, 4)
    assert second.ones.all()


@pytest.mark.parametrize("count", [1, 3])
def test_groups_with_strides_share_their_channels(count: int) -> None:
    group = ChannelGroup(count, 0, 0, 8, 16, 1, (100, 200))
    tiles = ChannelTiles(group, ChannelBlock(0, 1, 1, 16), 16)
    assert tiles.sizes == ((count, 1, 1, 16) if count > 1 else (1, 1, 16))
    assert tiles.per_channel(np.arange(16)).shape == (1, 1, 16)


def _square(values: NDArray[Any], points: tuple[int, ...]) -> tuple[ChannelTiles, ReductionAxes, ConstantWeights]:
    """A product of 8 channels by 8."""
    weights = values.reshape(8, 1, 1, 8)
    (group,) = group_blocks(1, 8, 8)
    tiles = ChannelTiles(group, ChannelBlock(0, 1, 1, 8), 8)
    return tiles, reduction_axes(group, weights), ConstantWeights(center(weights, points), np.zeros(8, np.int32))
