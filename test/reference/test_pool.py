"""Pools and means against plain loops."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import plain_arithmetic as plain

from qdialect.arithmetic import (
    Division,
    Multiplier,
    Rounding,
    folded_count_multiplier,
    requantize,
    requantize_parameters,
)
from qdialect.reference.qnn_evaluators import avg_pool2d, max_pool2d, mean

Window = tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]


@st.composite
def windows(draw: st.DrawFn) -> tuple[NDArray[np.int8], Window]:
    """Quantized values [2, H, W, 3] and a window that never lies in the padding alone."""
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    strides = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    top, left, bottom, right = (draw(st.integers(0, kernel[i % 2] - 1)) for i in range(4))
    height, width = kernel[0] + draw(st.integers(0, 4)), kernel[1] + draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.integers(-128, 128, (2, height, width, 3)).astype(np.int8)
    return values, (kernel, strides, (top, left, bottom, right))


def elements(values: NDArray[Any], window: Window, index: tuple[int, ...], outside: int | None) -> list[int]:
    """What the window at an output index holds; padding is `outside`, or left out."""
    kernel, strides, padding = window
    found: list[int] = []
    for r, s in np.ndindex(*kernel):
        y, x = index[1] * strides[0] - padding[0] + r, index[2] * strides[1] - padding[1] + s
        if 0 <= y < values.shape[1] and 0 <= x < values.shape[2]:
            found.append(int(values[index[0], y, x, index[3]]))
        elif outside is not None:
            found.append(outside)
    return found


def mean_value(values: list[int], division: Division, zero_point: int) -> int:
    if division is Division.HALF_AWAY_CENTERED:
        return tosa_mean(sum(values) - zero_point * len(values), len(values)) + zero_point
    exact = Fraction(sum(values), len(values))
    return plain.half_away(exact) if division is Division.HALF_AWAY else int(exact)


def tosa_mean(total: int, count: int) -> int:
    """As the specification of TOSA states it: reciprocal_scale, then apply_scale_32 without double_round."""
    shift = (count - 1).bit_length()
    return (total * (((2**30 + 1) << shift) // count) + (1 << (29 + shift))) >> (30 + shift)


@given(count=st.integers(1, 2**20), data=st.data())
def test_the_reciprocal_of_tosa_rounds_ties_away_from_zero(count: int, data: st.DataObject) -> None:
    total = data.draw(st.integers(-255 * count, 255 * count))
    tie = (2 * (total // count) + 1) * count // 2
    for value in (total, tie - 1, tie, tie + 1):
        assert tosa_mean(value, count) == plain.half_away(Fraction(value, count))


@given(case=windows(), division=st.sampled_from(list(Division)), include=st.booleans(), value=st.integers(-128, 127))
def test_average(case: tuple[NDArray[np.int8], Window], division: Division, include: bool, value: int) -> None:
    values, window = case
    got = avg_pool2d(values, *window, division, -100, 100, count_include_pad=include, zero_point=value)
    for index in np.ndindex(*got.shape):
        seen = elements(values, window, index, value if include else None)
        expected = mean_value(seen, division, value)
        assert got[index] == plain.clamp(expected, -100, 100)


@given(case=windows())
def test_maximum(case: tuple[NDArray[np.int8], Window]) -> None:
    values, window = case
    got = max_pool2d(values, *window, -100, 100)
    for index in np.ndindex(*got.shape):
        assert got[index] == plain.clamp(max(elements(values, window, index, None)), -100, 100)


@pytest.mark.parametrize("rounding", list(Rounding))
@given(height=st.integers(1, 9), width=st.integers(1, 9), seed=st.integers(0, 1000))
def test_mean_is_within_one_value_of_the_real_mean(rounding: Rounding, height: int, width: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-128, 128, (1, height, width, 4)).astype(np.int8)
    got = mean(values, [1, 2], True, 0.5, 3, 0.25, -7, -128, 127, rounding, Multiplier.F64)
    f32 = (values.astype(np.float64) - 3).mean(axis=(1, 2), keepdims=True) * 2 - 7
    assert got.shape == (1, 1, 1, 4)
    # Two roundings may add up to one quantization step.
    error = 1.0 if rounding in (Rounding.FIXED32_DOUBLE, Rounding.FIXED64_DOUBLE) else 0.5
    assert np.all(np.abs(got - np.clip(f32, -128, 127)) <= error + 1e-4)


def test_a_float_mean_divides_the_real_multiplier() -> None:
    values = np.arange(-60, 60).reshape(1, 5, 4, 6).astype(np.int8)
    rounding = Rounding.F32_RNE_ZP_LAST
    got = mean(values, [1, 2], False, 0.1, 2, 0.3, 5, -128, 127, rounding, Multiplier.F64)
    total = (values.astype(np.int64) - 2).sum(axis=(1, 2))
    params = requantize_parameters(rounding, np.array([0.1 / 0.3 / 20]))
    assert got.tolist() == requantize(total, params, 5, -128, 127, rounding).tolist()


@given(m=st.floats(2.0**-10, 2.0**10), count=st.integers(1, 10**6))
def test_folded_multiplier_keeps_its_precision(m: float, count: int) -> None:
    q, e = folded_count_multiplier(m, count)
    assert q < 2**31
    assert abs(q * 2.0 ** (e - 31) * count / m - 1) < 2.0**-28


def test_folding_never_shifts_below_the_register() -> None:
    q, e = folded_count_multiplier(2.0**-31, 1000)
    assert e == -31
    assert q == 2**30 * 2 // 1000
