"""Packed weights and their remainders, multiplied out as a micro-kernel does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, check, ends, tensor, variants_together
from drawn_graphs import Window, convolution, graph, ops_of, run_both
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.dialect import Conv2DOp, DenseOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import ChannelBlock
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import (
    ChannelTiles,
    ConstantWeights,
    PackedWeights,
    ZeroPointCorrection,
    center,
    clip_outliers,
    folded_bias,
    pack_weights,
    signed_parts,
)
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ChannelGroup, ReductionAxes, group_blocks
from qdialect.passes.trim_taps import TrimTapsPass
from qdialect.targets import TARGETS

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


# Weights, zero points and bias as kernels read them, against the definition of a quantized product.

INT32 = np.iinfo(np.int32)


@st.composite
def weights(draw: st.DrawFn) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Weights [OC, K] of either type, with quantized values and zero points that are often at the ends."""
    dtype = draw(st.sampled_from([np.uint8, np.int8]))
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    code = st.one_of(st.sampled_from([low, high]), st.integers(low, high))
    channels, taps = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    quantized = draw(st.lists(code, min_size=channels * taps, max_size=channels * taps))
    points = draw(st.lists(code, min_size=1, max_size=1) | st.lists(code, min_size=channels, max_size=channels))
    return np.array(quantized, dtype).reshape(channels, taps), tuple(points)


@given(weights())
def test_centered_values_and_the_rest_are_the_weights(drawn: tuple[NDArray[Any], tuple[int, ...]]) -> None:
    weight, points = drawn
    centered = center(weight, points)
    found = centered.values.astype(np.int64) - centered.zero_points[:, None]
    np.testing.assert_array_equal(found, weight.astype(np.int64) - np.array(points)[:, None])


def test_few_outliers_are_clipped_and_many_are_not() -> None:
    weight = np.full((4, 1, 1, 16), 100, np.uint8)
    weight[[0, 1, 1, 2], 0, 0, [3, 5, 7, 11]] = 255
    clipped, remainder = clip_outliers(center(weight, (100,)))
    assert not clipped.zero_points.any()
    assert sorted(map(tuple, np.argwhere(remainder).tolist())) == [
        (0, 0, 0, 3),
        (1, 0, 0, 5),
        (1, 0, 0, 7),
        (2, 0, 0, 11),
    ]
    weight[2, 0, 0, 15] = 255
    centered = center(weight, (100,))
    clipped, remainder = clip_outliers(centered)
    assert clipped is centered
    assert not remainder.any()


@given(
    weights(),
    st.integers(0, 255),
    st.lists(st.one_of(st.sampled_from([INT32.min, INT32.max]), st.integers(INT32.min, INT32.max)), min_size=4),
    st.randoms(use_true_random=False),
)
def test_the_folded_sum_is_the_product(
    drawn: tuple[NDArray[Any], tuple[int, ...]], input_point: int, biases: list[int], random: Any
) -> None:
    weight, points = drawn
    channels, taps = weight.shape
    x = np.array([random.choice([0, 255, random.randrange(256)]) for _ in range(taps)], np.int64)
    bias = np.array(biases[:channels], np.int32)
    exact = ((x - input_point) * (weight.astype(np.int64) - np.array(points)[:, None])).sum(axis=1) + bias
    centered = center(weight, points)
    raw = (x * centered.values.astype(np.int64)).sum(axis=1)
    found = raw + folded_bias(centered, bias, input_point) - centered.zero_points.astype(np.int64) * x.sum()
    np.testing.assert_array_equal(found % 2**32, exact % 2**32)


@pytest.mark.parametrize(
    ("weights", "count"), [([-128, 127], 1), ([0, 0], 1), ([-129, 5], 2), ([-256, 254], 2), ([255, -255], 3)]
)
def test_weights_are_sums_of_few_signed_parts(weights: list[int], count: int) -> None:
    parts = signed_parts(np.array(weights, np.int32))
    assert parts.dtype == np.int8
    assert parts.shape == (count, 2)
    assert parts.sum(axis=0, dtype=np.int32).tolist() == weights


# Kernels without the taps that meet padding alone give the same numbers, and keep every other tap.

SIZES, STEPS, BORDERS = st.integers(1, 6), st.integers(1, 3), st.integers(0, 12)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    """Images as small as kernels, with enough padding for an output; its sides need not be equal."""
    kernel, dilation, strides = (draw(st.tuples(sizes, sizes)) for sizes in (SIZES, STEPS, STEPS))
    image = draw(st.tuples(SIZES, SIZES))
    before = draw(st.tuples(BORDERS, BORDERS))
    missing = [dilation[i] * (kernel[i] - 1) + 1 - image[i] - before[i] for i in range(2)]
    behind = [max(0, missing[i]) + draw(st.integers(0, 4)) for i in range(2)]
    return (1, *image, 2), kernel, strides, (*before, behind[0], behind[1]), dilation, 1


def met(conv: Conv2DOp, axis: int) -> set[int]:
    """The rows or columns of taps that any output multiplies by an element of the image, by trying them all."""
    extent, outputs, taps = (shape_of(value.type)[1 + axis] for value in (conv.data, conv.output, conv.weight))
    starts = {tap: tap * conv.dilation[axis] - conv.padding[axis] for tap in range(taps)}
    return {
        tap
        for tap, start in starts.items()
        if any(0 <= start + out * conv.strides[axis] < extent for out in range(outputs))
    }


@given(windows(), st.integers(0, 99))
def test_taps_at_the_edges_meet_the_image_where_the_padding_reaches(window: Window, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-128, 128, (3, *window[1], 2)).astype(np.int8)
    before = convolution(window, "ui8", values, (3,))
    (old,) = ops_of(before, Conv2DOp.OPERATION_NAME)
    after = run_both(before, TrimTapsPass())
    (new,) = ops_of(after, Conv2DOp.OPERATION_NAME)
    for axis in range(2):
        found = met(new, axis)
        assert len(found) == len(met(old, axis))
        if found:
            assert min(found) == 0 or new.padding[axis] < new.dilation[axis]
            assert max(found) == shape_of(new.weight.type)[1 + axis] - 1 or new.padding[2 + axis] < new.dilation[axis]


@pytest.mark.parametrize(
    ("image", "kernel", "dilation", "kept"),
    [
        ((4, 4), (3, 3), (4, 4), (1, 1)),
        ((4, 4), (3, 3), (3, 3), (3, 3)),
        ((1, 1), (3, 3), (1, 1), (1, 1)),
        ((1, 9), (5, 5), (1, 1), (1, 5)),
        ((3, 5), (5, 5), (2, 2), (3, 5)),
    ],
)
def test_what_is_left_of_kernels_that_keep_the_size_of_an_image(
    image: tuple[int, int], kernel: tuple[int, int], dilation: tuple[int, int], kept: tuple[int, int]
) -> None:
    top, left = (step * (taps // 2) for step, taps in zip(dilation, kernel, strict=True))
    values = np.random.default_rng(1).integers(-128, 128, (3, *kernel, 2)).astype(np.int8)
    window: Window = ((1, *image, 2), kernel, (1, 1), (top, left, top, left), dilation, 1)
    after = run_both(convolution(window, "i8", values, (3,)), TrimTapsPass())
    (conv,) = ops_of(after, Conv2DOp.OPERATION_NAME)
    assert shape_of(conv.weight.type)[1:3] == kept


# Weights of which a few are more than a signed byte: compiled, they give what the reference gives.

# Input, weights, strides, padding, dilation, groups.
WINDOWS = [
    ((1, 5, 7, 3), (8, 3, 3, 3), (2, 2), (0, 1, 1, 0), (1, 1), 1),
    ((2, 4, 9, 12), (17, 1, 1, 12), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((1, 6, 6, 6), (33, 2, 3, 6), (1, 1), (1, 1, 1, 1), (2, 1), 1),
    ((1, 3, 5, 36), (72, 1, 1, 18), (1, 1), (0, 0, 0, 0), (1, 1), 2),
    ((1, 4, 4, 12), (24, 3, 3, 2), (1, 1), (1, 1, 1, 1), (1, 1), 6),
    ((1, 1, 1, 132), (200, 1, 1, 132), (1, 1), (0, 0, 0, 0), (1, 1), 1),
]


def outlying(shape: tuple[int, ...], element: str, points: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Weights near their zero point, but for two taps that are as far from it as quantized values go."""
    rng = np.random.default_rng(4)
    low, high = ends(element)
    near = np.array(points).reshape(-1, *[1] * (len(shape) - 1)) + rng.integers(-60, 60, shape)
    values = near.clip(low, high)
    flat = values.reshape(shape[0], -1)
    flat[-1, -1] = flat[0, flat.shape[1] // 2] = high if points[0] < (low + high) / 2 else low
    return values.astype(np.uint8 if element == "ui8" else np.int8)


@variants_together
@pytest.mark.parametrize("number", range(len(WINDOWS)))
@pytest.mark.parametrize("data", EIGHT_BIT)
def test_convolutions(number: int, data: str) -> None:
    taps = WINDOWS[number][1]
    weight = EIGHT_BIT[number % 2]
    low, high = ends(weight)
    points = tuple((low + 90, high - 90)[(number + k) % 2] for k in range(taps[0] if number % 3 == 1 else 1))
    values = outlying(taps, weight, points)

    module = convolution(WINDOWS[number], data, values, points)
    assert 'qnn.role = "remainder0"' in str(lower(module, TARGETS["generic"], Phase.LINALG).module)
    check(module)


def test_layers_that_differ_in_the_position_of_an_outlier_share_a_kernel() -> None:
    weights = [np.full((16, 16), 100, np.uint8) for _ in range(2)]
    weights[0][3, 2] = weights[1][5, 13] = 250
    scales: dict[str, Any] = {"input_scale": 0.5, "weight_scales": (0.25,)}

    def body(operand: ir.Value) -> list[ir.Value]:
        points: dict[str, Any] = {"input_zero_point": 3, "weight_zero_points": (100,)}
        return [
            build(DenseOp, operand, constant(values), element="i32", **scales, **points).output for values in weights
        ]

    module = graph([tensor((5, 16), "ui8")], body)
    assert lower(module, TARGETS["generic"], Phase.LINALG).kernels == 1
    check(module)
