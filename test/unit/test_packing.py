"""Weights, zero points and bias as kernels read them, against the definition of a quantized product."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import (
    center,
    clip_outliers,
    folded_bias,
    pack_k_groups,
    pad_channels,
    signed_parts,
)

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


def test_a_zero_point_is_left_only_where_it_must_be() -> None:
    weight = np.array([[0, 255], [10, 200], [128, 128]], np.uint8)
    centered = center(weight, (100, 100, 0))
    assert centered.zero_points.tolist() == [100 - 128, 0, -128]
    assert centered.values.tolist() == [[-128, 127], [-90, 100], [0, 0]]


def test_signed_weights_of_zero_point_zero_stay() -> None:
    weight = np.array([[-128, 127]], np.int8)
    centered = center(weight, (0,))
    np.testing.assert_array_equal(centered.values, weight)
    assert centered.zero_points.tolist() == [0]


@given(weights())
def test_clipped_values_and_their_remainder_are_the_weights(drawn: tuple[NDArray[Any], tuple[int, ...]]) -> None:
    weight, points = drawn
    clipped, remainder = clip_outliers(center(weight, points))
    found = clipped.values.astype(np.int64) - clipped.zero_points[:, None] + remainder
    np.testing.assert_array_equal(found, weight.astype(np.int64) - np.array(points)[:, None])
    assert not (clipped.zero_points.any() and remainder.any())


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


def test_a_remainder_that_does_not_fit_is_not_made() -> None:
    weight = np.array([[255, 0, 7, 9]], np.uint8)
    clipped, remainder = clip_outliers(center(weight, (0,)))
    assert clipped.zero_points.tolist() == [-128]
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


def test_a_folded_bias_wraps_as_accumulators_do() -> None:
    centered = center(np.full((1, 3), -128, np.int8), (0,))
    folded = folded_bias(centered, np.array([INT32.max], np.int32), 255)
    assert folded.dtype == np.int32
    assert int(folded[0]) == (INT32.max + 255 * 3 * 128) - 2**32


@given(
    st.integers(1, 40), st.lists(st.integers(1, 3), max_size=2), st.integers(1, 9), st.sampled_from([4, 8, 16]),
    st.integers(1, 4),
)  # fmt: skip
def test_packed_taps_lie_in_the_order_of_the_loops(
    channels: int, outer: list[int], run: int, lanes: int, vectors: int
) -> None:
    taps = np.random.default_rng(channels * run).integers(-128, 128, (channels, *outer, run), np.int8)
    packed = pack_k_groups(taps, lanes, vectors)
    tile, k_groups = lanes * vectors, -(-run // 4)
    assert packed.shape == (-(-channels // tile), *outer, k_groups, vectors, lanes, 4)
    assert packed.flags.c_contiguous
    for index in np.ndindex(*packed.shape):
        block, (*tap_position, k_group, vector, lane, tap) = index[0], index[1:]
        channel, position = block * tile + vector * lanes + lane, k_group * 4 + tap
        inside = channel < channels and position < run
        assert packed[index] == (taps[(channel, *tap_position, position)] if inside else 0)


def test_channels_are_filled_up() -> None:
    assert pad_channels(np.array([1, 2, 3], np.int32), 4).tolist() == [1, 2, 3, 0]
    assert pad_channels(np.array([1, 2], np.int64), 2).dtype == np.int64


@pytest.mark.parametrize(
    ("weights", "count"), [([-128, 127], 1), ([0, 0], 1), ([-129, 5], 2), ([-256, 254], 2), ([255, -255], 3)]
)
def test_weights_are_sums_of_few_signed_parts(weights: list[int], count: int) -> None:
    parts = signed_parts(np.array(weights, np.int32))
    assert parts.dtype == np.int8
    assert parts.shape == (count, 2)
    assert parts.sum(axis=0, dtype=np.int32).tolist() == weights
