"""Requantization by one fused multiply-add, against the reference's arithmetic on every accumulator."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdialect.arithmetic import IntArray, RequantizeParameters, Rounding, requantize, requantize_parameters
from qdialect.arithmetic.machine import multiply_add
from qdialect.lowering.qnn_to_linalg.bodies.fixed_point_multiplier import channel_multipliers, shifted_thresholds
from qdialect.lowering.qnn_to_linalg.bodies.multiply_add_rounding import (
    FactorProduct,
    MultiplyAddRounding,
    factor_product,
    multiply_add_rounding,
)

INT32 = np.iinfo(np.int32)
FIXED = [rounding for rounding in Rounding if rounding.is_fixed]


def of_multiply_add(form: MultiplyAddRounding, acc: IntArray) -> IntArray:
    """What the kernel computes, with accumulators [..., C]; fails where 32 bits would not hold a number."""
    multiplier, rest = (p.values for p in form.parameters)
    x = acc + form.offset
    assert x.min() >= INT32.min
    assert x.max() <= INT32.max
    number = x.astype(np.float32)
    if rest.dtype == np.int32:
        rest = np.where(x < 0, -rest.view(np.float32), rest.view(np.float32))
    total = multiply_add(number, np.broadcast_to(multiplier, x.shape), np.broadcast_to(rest, x.shape))
    assert np.abs(total).max() < 2.0**31
    return np.trunc(total).astype(np.int64) + form.zero_point


def check(
    rounding: Rounding,
    params: RequantizeParameters,
    zero_point: int,
    bounds: tuple[int, int],
    acc_range: tuple[IntArray, IntArray],
    acc: IntArray | None = None,
) -> MultiplyAddRounding | None:
    """Compare the form, if there is one, with the reference on all accumulators; returns it."""
    low, high = acc_range
    shift = -bounds[0]
    steps = shifted_thresholds(params, zero_point, bounds, shift, rounding, acc_range)
    assert steps is not None
    form = multiply_add_rounding(steps, channel_multipliers(params, len(low)), zero_point + shift)
    if form is None:
        return None
    every = np.arange(low.min(), high.max() + 1, dtype=np.int64)[:, None] if acc is None else acc
    acc = np.clip(every, low, high)
    wanted = requantize(acc, params, zero_point, *bounds, rounding) + shift
    np.testing.assert_array_equal(np.clip(of_multiply_add(form, acc), 0, bounds[1] + shift), wanted)
    return form


@st.composite
def requantizations(draw: st.DrawFn) -> tuple[Any, ...]:
    """A rounding mode, multipliers of two channels, a zero point, bounds and ranges."""
    rounding = draw(st.sampled_from(FIXED))
    multipliers = st.one_of(st.floats(2.0**-12, 4.0), st.integers(-12, 1).map(lambda e: 2.0**e), st.just(1 / 3))
    f32 = np.array(draw(st.lists(multipliers, min_size=2, max_size=2)))
    lo = draw(st.sampled_from([-128, 0, -100, 7]))
    hi = draw(st.sampled_from([lo, lo + 1, lo + 100, lo + 255]))
    zero_point = draw(st.sampled_from([lo, hi, (lo + hi) // 2, lo - 3, 5]))
    ends = st.integers(-40000, 40000)
    pairs = [sorted((draw(ends), draw(ends))) for _ in range(2)]
    low, high = np.array(pairs, np.int64).T
    return rounding, requantize_parameters(rounding, f32), zero_point, (lo, hi), (low, high)


@given(requantizations())
def test_multiply_adds_give_the_requantization(drawn: tuple[Any, ...]) -> None:
    check(*drawn)


@pytest.mark.parametrize("rounding", FIXED)
@pytest.mark.parametrize("zero_point", [-128, -7, 0, 50])
def test_multipliers_of_networks_have_multiply_adds(rounding: Rounding, zero_point: int) -> None:
    seed = FIXED.index(rounding) * 256 + zero_point + 128
    multipliers = 2.0 ** np.random.default_rng(seed).uniform(-10, -2, 12)
    acc_range = (np.full(12, -150_000), np.full(12, 150_000))
    form = check(rounding, requantize_parameters(rounding, multipliers), zero_point, (-128, 127), acc_range)
    assert form is not None
    assert (form.parameters[1].element == "f32") == (zero_point == -128)


def test_accumulators_that_float32_does_not_hold_are_rounded_monotonically() -> None:
    params = requantize_parameters(Rounding.FIXED32_DOUBLE, np.array([2.0**-9.3]))
    reach = 2**30 - 1
    acc = np.concatenate([np.arange(-(2**17), 2**17), np.arange(2**24 - 9, 2**24 + 9), [-reach, reach, 2**25 + 1]])
    acc_range = (np.array([-reach]), np.array([reach]))
    assert check(Rounding.FIXED32_DOUBLE, params, 3, (-128, 127), acc_range, acc[:, None]) is not None


@pytest.mark.parametrize(
    ("multiplier", "reach"),
    [(2.0**-18, 2**26), (0.0, 1000), (0.9, 2**31 - 1)],
    ids=["thresholds of 25 bits", "no multiplier", "results of 31 bits"],
)
def test_numbers_beyond_float32_have_none(multiplier: float, reach: int) -> None:
    params = requantize_parameters(Rounding.FIXED32_DOUBLE, np.array([multiplier]))
    acc_range = (np.array([-reach]), np.array([reach]))
    assert check(Rounding.FIXED32_DOUBLE, params, 0, (-128, 127), acc_range, np.zeros((1, 1), np.int64)) is None


def test_ties_that_go_up_on_both_sides_have_none() -> None:
    params = requantize_parameters(Rounding.FIXED64_UP, np.array([2.0**-4]))
    acc_range = (np.array([-10_000]), np.array([10_000]))
    assert check(Rounding.FIXED64_UP, params, 0, (-128, 127), acc_range) is None
    assert check(Rounding.FIXED64_UP, params, -128, (-128, 127), acc_range) is not None


def of_factors(form: FactorProduct, lhs: IntArray, rhs: IntArray) -> IntArray:
    factors = rhs.astype(np.float32) * form.multiplier
    negative = (lhs < 0)[:, None] ^ (rhs < 0)
    rest = np.where(negative, -form.rest, form.rest)
    shape = rest.shape
    total = multiply_add(np.broadcast_to(lhs[:, None].astype(np.float32), shape), np.broadcast_to(factors, shape), rest)
    return np.trunc(total).astype(np.int64)


def check_product(
    rounding: Rounding, multiplier: float, points: tuple[int, int, int], bounds: tuple[int, int]
) -> FactorProduct | None:
    """Compare the product by factors, if there is one, with the reference on all pairs; returns it."""
    values = np.arange(-128, 128)
    lhs, rhs, zero_point = values - points[0], values - points[1], points[2]
    params = requantize_parameters(rounding, np.array([multiplier]))
    wanted = requantize((lhs[:, None] * rhs).reshape(-1, 1), params, zero_point, *bounds, rounding).reshape(256, 256)
    form = factor_product(wanted, lhs, rhs, zero_point, bounds, multiplier)
    if form is not None:
        np.testing.assert_array_equal(np.clip(of_factors(form, lhs, rhs) + zero_point, *bounds), wanted)
    return form


POINTS = st.sampled_from([-128, -5, 0, 127])


@given(
    st.sampled_from(Rounding),
    st.one_of(st.floats(2.0**-12, 2.0), st.integers(-12, 1).map(lambda e: 2.0**e)),
    st.tuples(POINTS, POINTS, POINTS),
    st.sampled_from([(-128, 127), (-5, 127), (-128, 0), (0, 0)]),
)
def test_factors_give_the_product(
    rounding: Rounding, multiplier: float, points: tuple[int, int, int], bounds: tuple[int, int]
) -> None:
    check_product(rounding, multiplier, points, bounds)


@pytest.mark.parametrize("rounding", [Rounding.FIXED32_DOUBLE, Rounding.FIXED64_NEAREST])
def test_products_of_networks_have_factors(rounding: Rounding) -> None:
    for multiplier in 2.0 ** np.random.default_rng(1).uniform(-9, -3, 20):
        assert check_product(rounding, float(multiplier), (14, -128, -3), (-128, 127)) is not None
