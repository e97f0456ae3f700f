"""Requantization as one multiplication, addition and shift, against the reference's arithmetic on every accumulator."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.arithmetic import (
    FixedMultiplier,
    IntArray,
    RequantizeParameters,
    Rounding,
    requantize,
    requantize_parameters,
    select_channels,
    thresholds_of,
)
from qdialect.lowering.qnn_to_linalg.bodies.fixed_point_multiplier import (
    FixedPointMultiplier,
    channel_multipliers,
    fixed_point_multiplier,
    shifted_thresholds,
)

INT32 = np.iinfo(np.int32)
FIXED = [rounding for rounding in Rounding if rounding.is_fixed]
# One below one, powers of two, and what makes double roundings and ties frequent.
MULTIPLIERS = st.one_of(
    st.floats(2.0**-12, 0.9999),
    st.integers(-12, -1).map(lambda e: 2.0**e),
    st.sampled_from([0.0, 2.0**-40, 0.75, 1 / 3]),
)


def line(
    params: RequantizeParameters,
    zero_point: int,
    bounds: tuple[int, int],
    shift: int,
    rounding: Rounding,
    acc_range: tuple[IntArray, IntArray],
) -> FixedPointMultiplier | None:
    """The multipliers whose clamped values are those of `requantize` plus `shift`, if there are any."""
    steps = shifted_thresholds(params, zero_point, bounds, shift, rounding, acc_range)
    return None if steps is None else fixed_point_multiplier(steps, channel_multipliers(params, len(steps.low)))


def of_line(form: FixedPointMultiplier, acc: IntArray) -> IntArray:
    """What the kernel computes, with accumulators [..., C]; fails where 32 bits would not hold a number."""
    arrays = {p.name: p.values.astype(np.int64) for p in form.parameters}
    assert ("shift" in arrays) == (form.shift is None)
    slope, rest, shift = (
        arrays["slope"],
        arrays["rest"],
        arrays["shift"] if form.shift is None else np.int64(form.shift),
    )
    x = (acc + form.offset) % 2**32
    assert x.max() < 2**31
    rest = np.where(x < arrays["limit"], arrays["rest_below"], rest) if "limit" in arrays else rest
    total = (x * (slope % 2**32) >> 32) + rest
    assert INT32.min <= total.min()
    assert total.max() <= INT32.max
    return total >> shift


def check(
    rounding: Rounding,
    params: RequantizeParameters,
    zero_point: int,
    bounds: tuple[int, int],
    shift: int,
    acc_range: tuple[IntArray, IntArray],
) -> FixedPointMultiplier | None:
    """Compare the line, if there is one, with the reference on all accumulators; returns it."""
    low, high = acc_range
    form = line(params, zero_point, bounds, shift, rounding, acc_range)
    if form is None:
        return None
    acc: IntArray = np.clip(np.arange(low.min(), high.max() + 1, dtype=np.int64)[:, None], low, high)
    wanted = requantize(acc, select_channels(params, np.arange(len(low))), zero_point, *bounds, rounding) + shift
    found = np.clip(of_line(form, acc), bounds[0] + shift, bounds[1] + shift)
    np.testing.assert_array_equal(found, wanted)
    return form


@st.composite
def requantizations(draw: st.DrawFn) -> tuple[Any, ...]:
    """A rounding mode, multipliers, zero point, bounds, shift and reach."""
    channels = draw(st.integers(1, 4))
    rounding = draw(st.sampled_from(Rounding))
    f32 = draw(st.lists(MULTIPLIERS, min_size=channels, max_size=channels))
    f32 = f32[: draw(st.sampled_from([1, channels]))]
    lo = draw(st.sampled_from([-128, 0, -100, 7]))
    hi = draw(st.sampled_from([lo, lo + 1, lo + 100, lo + 255]))
    zero_point = draw(st.sampled_from([lo, hi, (lo + hi) // 2, lo - 3, 5]))
    ends = st.integers(-40000, 40000)
    pairs = [sorted((draw(ends), draw(ends))) for _ in range(channels)]
    low, high = np.array(pairs, np.int64).T
    return rounding, requantize_parameters(rounding, np.array(f32)), zero_point, (lo, hi), -lo, (low, high)


@given(requantizations())
def test_the_line_is_the_requantization(drawn: tuple[Any, ...]) -> None:
    form = check(*drawn)
    assert form is not None or not drawn[0].is_fixed


@pytest.mark.parametrize("rounding", FIXED)
@pytest.mark.parametrize("zero_point", [-128, 0, 127])
def test_fixed_rounding_modes_have_multipliers_at_multipliers_of_networks(rounding: Rounding, zero_point: int) -> None:
    # Others in every case: all their accumulators are compared, which takes long.
    seed = FIXED.index(rounding) * 256 + zero_point + 128
    f32 = 2.0 ** np.random.default_rng(seed).uniform(-13, -2, 20)
    acc_range = (np.full(20, -150_000), np.full(20, 150_000))
    assert check(rounding, requantize_parameters(rounding, f32), zero_point, (-128, 127), 128, acc_range) is not None


def test_two_roundings_jump_at_zero_and_one_rounding_does_not() -> None:
    acc_range = (np.array([-100_000]), np.array([100_000]))

    def jumps(rounding: Rounding, zero_point: int) -> bool:
        params = requantize_parameters(rounding, np.array([0.0012345]))
        form = check(rounding, params, zero_point, (0, 255), 0, acc_range)
        assert form is not None
        return "limit" in {parameter.name for parameter in form.parameters}

    assert jumps(Rounding.FIXED32_DOUBLE, 128)
    # What is below zero has no code of its own.
    assert not jumps(Rounding.FIXED32_DOUBLE, 0)
    assert not jumps(Rounding.FIXED64_UP, 128)


@pytest.mark.parametrize(
    ("zero_point", "f32", "shift"),
    [
        # Slopes of 26 to 30 bits tell all thresholds apart.
        (0, [0.02, 0.07, 0.25], 0),
        # Those of 21 bits do not; of 25 they do, with the least shift that a channel has of its own.
        (0, [0.06, 0.000345678], 4),
        # Below zero this rounding jumps by a unit of each channel's own shift.
        (128, [0.02, 0.07, 0.25], None),
    ],
)
def test_channels_have_one_shift_where_windows_are_wide(zero_point: int, f32: list[float], shift: int | None) -> None:
    params = requantize_parameters(Rounding.FIXED32_DOUBLE, np.array(f32))
    reach = np.full(len(f32), 700_000)
    form = check(Rounding.FIXED32_DOUBLE, params, zero_point, (0, 255), 0, (-reach, reach))
    assert form is not None
    assert form.shift == shift


@pytest.mark.parametrize("rounding", Rounding)
def test_where_multipliers_are_one_or_more_there_is_no_line(rounding: Rounding) -> None:
    params = requantize_parameters(rounding, np.array([0.5, 1.0]))
    assert line(params, 0, (0, 255), 0, rounding, (np.array([-9, -9]), np.array([9, 9]))) is None


def test_accumulators_that_wrap_have_no_line() -> None:
    params = requantize_parameters(Rounding.FIXED64_UP, np.array([0.001]))
    assert line(params, 0, (0, 255), 0, Rounding.FIXED64_UP, (np.array([0]), np.array([2**31]))) is None


def test_a_channel_without_weights_may_have_any_bias() -> None:
    params = requantize_parameters(Rounding.FIXED32_DOUBLE, np.array([2.0**-29, 0.001]))
    acc_range = (np.array([2**31 - 5, -1000]), np.array([2**31 - 1, 1000]))
    form = line(params, 3, (0, 255), 0, Rounding.FIXED32_DOUBLE, acc_range)
    assert form is not None
    acc = np.stack([*acc_range, (acc_range[0] + acc_range[1]) // 2])
    wanted = requantize(acc, params, 3, 0, 255, Rounding.FIXED32_DOUBLE)
    np.testing.assert_array_equal(np.clip(of_line(form, acc), 0, 255), wanted)


@given(
    st.lists(st.tuples(st.integers(2**30, 2**31 - 1), st.integers(-31, 0)), min_size=1, max_size=4),
    st.integers(-128, 255),
    st.sampled_from([(-2000, 2000), (-5, 3), (2**31 - 9, 2**31 - 1), (-(2**31), -(2**31) + 9), (-(2**31), 2**31 - 1)]),
)
def test_double_rounding_reaches_each_value_at_its_threshold(
    multipliers: list[tuple[int, int]], zero_point: int, ends: tuple[int, int]
) -> None:
    q, e = np.array(multipliers, np.int32).T
    params, rounding, bounds = FixedMultiplier(q, e), Rounding.FIXED32_DOUBLE, (-128, 127)
    low, high = (np.full(len(q), end) for end in ends)
    steps = thresholds_of(params, zero_point, bounds, rounding, (low, high))
    assert ((steps.first >= low) & (steps.first <= high + 1)).all()
    wanted = steps.values[:, None]
    reached = requantize(np.minimum(steps.first, high), params, zero_point, *bounds, rounding) >= wanted
    before = requantize(np.maximum(steps.first - 1, low), params, zero_point, *bounds, rounding) < wanted
    np.testing.assert_array_equal(reached, steps.first <= high)
    np.testing.assert_array_equal(before, steps.first > low)


@pytest.mark.parametrize("rounding", Rounding)
@pytest.mark.parametrize("f32", [[0.0123], [2.0**-3, 0.9, 1.5, 1000.0, 0.0]])
def test_steps_are_where_values_begin(rounding: Rounding, f32: list[float]) -> None:
    low, high = np.array([-3000, -1, 0, -40, 7]), np.array([3000, 1, 900, 40, 7])
    params, everyone = requantize_parameters(rounding, np.array(f32)), np.arange(5)
    steps = thresholds_of(params, 3, (-10, 20), rounding, (low, high))
    own = select_channels(params, everyone)

    def quantized(acc: IntArray) -> NDArray[np.int64]:
        return requantize(np.clip(acc, low, high), own, 3, -10, 20, rounding)

    wanted = steps.values[:, None]
    assert ((quantized(steps.first) >= wanted) | (steps.first == high + 1)).all()
    assert ((quantized(steps.first - 1) < wanted) | (steps.first == low)).all()
