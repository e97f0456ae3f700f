"""Requantization by sums and shifts of packed words, against the reference's arithmetic on every accumulator."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdialect.arithmetic import IntArray, Rounding, requantize, requantize_parameters
from qdialect.lowering.qnn_to_linalg.bodies.fixed_point_multiplier import (
    WordMultiplier,
    channel_multipliers,
    shifted_thresholds,
    word_multiplier,
)

WORD = np.iinfo(np.int16)


def of_words(form: WordMultiplier, acc: IntArray) -> IntArray:
    """The bytes that packed words give for accumulators [..., C]; fails where a number would not fit."""
    slope, rest, shift = (p.values.astype(np.int64) for p in form.parameters)
    assert rest.min() >= 0
    assert rest.max() <= WORD.max
    assert shift.min() >= 0
    assert shift.max() <= 7
    x = acc + form.offset
    assert x.min() >= -(2**31)
    assert x.max() < 2**31
    high = np.clip(x * slope >> 32, WORD.min, WORD.max)
    return np.clip(np.clip(high + rest, WORD.min, WORD.max) >> shift, 0, 255)


def check(
    rounding: Rounding, multipliers: list[float], zero_point: int, bounds: tuple[int, int], reach: int
) -> WordMultiplier | None:
    """Compare the form, if there is one, with the reference on all accumulators; returns it."""
    channels = len(multipliers)
    params = requantize_parameters(rounding, np.array(multipliers))
    acc_range = (np.full(channels, -reach), np.full(channels, reach))
    steps = shifted_thresholds(params, zero_point, bounds, -bounds[0], rounding, acc_range)
    assert steps is not None
    form = word_multiplier(steps, channel_multipliers(params, channels))
    if form is None:
        return None
    acc: IntArray = np.repeat(np.arange(-reach, reach + 1, dtype=np.int64)[:, None], channels, axis=1)
    wanted = requantize(acc, params, zero_point, *bounds, rounding) - bounds[0]
    np.testing.assert_array_equal(np.minimum(of_words(form, acc), bounds[1] - bounds[0]), wanted)
    return form


@given(
    st.sampled_from([rounding for rounding in Rounding if rounding.is_fixed]),
    st.lists(st.floats(2.0**-14, 0.75), min_size=1, max_size=3),
    st.sampled_from([-128, -3, 0, 127]),
    st.sampled_from([(-128, 127), (-128, 0), (0, 255)]),
    st.integers(1, 60_000),
)
def test_words_give_the_requantization(
    rounding: Rounding, multipliers: list[float], zero_point: int, bounds: tuple[int, int], reach: int
) -> None:
    check(rounding, multipliers, zero_point, bounds, reach)


@pytest.mark.parametrize("rounding", [rounding for rounding in Rounding if rounding.is_fixed])
def test_multipliers_of_networks_have_words_where_nothing_is_below_the_zero_point(rounding: Rounding) -> None:
    multipliers = 2.0 ** np.random.default_rng(5).uniform(-11, -1.5, 12)
    assert check(rounding, multipliers.tolist(), -128, (-128, 127), 150_000) is not None


def test_a_jump_at_zero_and_multipliers_of_a_half_have_no_words() -> None:
    assert check(Rounding.FIXED32_DOUBLE, [0.0012345], 0, (-128, 127), 150_000) is None
    assert check(Rounding.FIXED64_UP, [0.0012345], 0, (-128, 127), 150_000) is not None
    assert check(Rounding.FIXED64_UP, [0.0012345, 0.5], 0, (-128, 127), 1000) is None
