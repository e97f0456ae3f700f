"""Multipliers from scales, and the requantization rounding modes against exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from reference import plain_arithmetic as plain

from qdialect.arithmetic import (
    FixedMultiplier,
    FloatMultiplier,
    Multiplier,
    Rounding,
    quantize_multiplier,
    real_multiplier,
    requantize,
    requantize_parameters,
)

ACCUMULATORS = st.one_of(
    st.integers(plain.INT32_MIN, plain.INT32_MAX),
    st.integers(-100_000, 100_000),
    st.sampled_from([plain.INT32_MIN, plain.INT32_MAX, -(2**24) - 1, 2**24 + 1]),
)
MULTIPLIERS = st.one_of(
    st.floats(2.0**-40, 2.0**40),
    st.floats(1e-4, 0.1),
    st.integers(-31, 31).map(lambda e: 2.0**e),
    st.floats(1.0, 1e30),
)
RANGES = st.sampled_from([(-128, 127), (0, 255), (plain.INT32_MIN, plain.INT32_MAX), (3, 3)])


@pytest.mark.parametrize("rounding", list(Rounding))
@given(acc=ACCUMULATORS, m=MULTIPLIERS, zero_point=st.integers(-128, 255), bounds=RANGES)
@example(acc=-8, m=1 / 16, zero_point=1, bounds=(-128, 127))
@example(acc=plain.INT32_MAX, m=1e30, zero_point=255, bounds=(0, 255))
@example(acc=plain.INT32_MIN, m=1e30, zero_point=-128, bounds=(-128, 127))
def test_requantize_equals_exact_arithmetic(
    rounding: Rounding, acc: int, m: float, zero_point: int, bounds: tuple[int, int]
) -> None:
    params = requantize_parameters(rounding, np.array([m]))
    got = requantize(np.array([acc], dtype=np.int32), params, zero_point, *bounds, rounding)
    if rounding.is_fixed:
        scaled = plain.multiply(acc, *quantize_multiplier(m), rounding)
        expected = plain.clamp(scaled + zero_point, *bounds)
    else:
        expected = plain.requantize_float(acc, plain.float32(m), zero_point, *bounds, rounding)
    assert got.tolist() == [expected]


@pytest.mark.parametrize("rounding", list(Rounding))
@given(odd=st.integers(-600, 600), zero_point=st.integers(-128, 127), shift=st.integers(1, 12))
def test_ties_equal_exact_arithmetic(rounding: Rounding, odd: int, zero_point: int, shift: int) -> None:
    acc, m = (2 * odd + 1) << (shift - 1), 2.0**-shift
    params = requantize_parameters(rounding, np.array([m]))
    got = requantize(np.array([acc], dtype=np.int32), params, zero_point, -(2**15), 2**15, rounding)
    if rounding.is_fixed:
        expected = plain.multiply(acc, *quantize_multiplier(m), rounding) + zero_point
    else:
        expected = plain.requantize_float(acc, m, zero_point, -(2**15), 2**15, rounding)
    assert got.tolist() == [expected]


@pytest.mark.parametrize("rounding", list(Rounding))
def test_one_multiplier_per_channel_of_the_last_axis(rounding: Rounding) -> None:
    rng = np.random.default_rng(5)
    acc = rng.integers(-40_000, 40_000, (2, 3, 5, 7), dtype=np.int32)
    f32 = rng.uniform(1e-4, 2e-2, 7)
    whole = requantize(acc, requantize_parameters(rounding, f32), -3, -128, 127, rounding)
    for channel in range(7):
        params = requantize_parameters(rounding, f32[channel : channel + 1])
        alone = requantize(acc[..., channel], params, -3, -128, 127, rounding)
        assert np.array_equal(whole[..., channel], alone)


def test_parameters_of_another_rounding_mode_are_refused() -> None:
    params = FloatMultiplier(np.array([0.5], dtype=np.float32))
    with pytest.raises(ValueError, match="must belong to fixed64_up, but got FloatMultiplier"):
        requantize(np.zeros(1, dtype=np.int32), params, 0, -128, 127, Rounding.FIXED64_UP)


@given(m=st.floats(2.0**-32, 2.0**40))
@example(m=1.0)
@example(m=math.nextafter(1.0, 0.0))
@example(m=2.0**-32)
def test_quantized_multiplier_is_the_nearest(m: float) -> None:
    q, e = quantize_multiplier(m)
    assert 2**30 <= q < 2**31
    assert abs(Fraction(m) - Fraction(q) * Fraction(2) ** (e - 31)) <= Fraction(2) ** (e - 32)


@pytest.mark.parametrize("m", [0.0, math.nextafter(2.0**-32, 0.0) * 0.99, 1e-300, 5e-324])
def test_vanishing_multipliers_are_flushed(m: float) -> None:
    assert quantize_multiplier(m) == (0, 0)


@pytest.mark.parametrize("m", [-0.5, math.nan, math.inf])
def test_impossible_multipliers_are_refused(m: float) -> None:
    with pytest.raises(ValueError, match="multiplier must be finite and not negative, but got"):
        quantize_multiplier(m)
    with pytest.raises(ValueError, match="multiplier must be finite"):
        requantize_parameters(Rounding.F32_RNE_ZP_LAST, np.array([m]))


@given(*[st.floats(2.0**-20, 2.0**10, width=32) for _ in range(3)])
def test_multiplier_forms_equal_exact_arithmetic(input_scale: float, weight_scale: float, output_scale: float) -> None:
    product = plain.float32(input_scale * weight_scale)
    assume(product > 0)
    expected = {
        Multiplier.F64: input_scale * weight_scale / output_scale,
        Multiplier.F32_PRODUCT: product / output_scale,
        Multiplier.F32: plain.float32(product / output_scale),
    }
    for form, value in expected.items():
        assert real_multiplier(input_scale, [weight_scale], output_scale, form).tolist() == [value]


def test_the_form_of_the_multiplier_decides_a_published_case() -> None:
    """A TFLite convolution whose exact product is 6.50000047, and for which the runtime printed -120."""
    scales = (0.05296124517917633, [0.024093778803944588], 0.11484327912330627)
    acc = np.array([585], dtype=np.int32)
    values: dict[tuple[Rounding, Multiplier], int] = {}
    for rounding in (Rounding.FIXED64_UP, Rounding.FIXED32_DOUBLE, Rounding.F32_RNE_ZP_LAST):
        for form in (Multiplier.F64, Multiplier.F32):
            params = requantize_parameters(rounding, real_multiplier(*scales, form))
            values[rounding, form] = int(requantize(acc, params, -126, -128, 127, rounding)[0])
    assert values[Rounding.FIXED64_UP, Multiplier.F64] == -119
    assert values[Rounding.FIXED32_DOUBLE, Multiplier.F64] == -119
    assert values[Rounding.F32_RNE_ZP_LAST, Multiplier.F64] == -119
    assert values[Rounding.F32_RNE_ZP_LAST, Multiplier.F32] == -120


@given(st.lists(st.one_of(MULTIPLIERS, st.floats(0, 2.0**-28), st.just(1 - 2.0**-40)), min_size=1, max_size=9))
@example([0.0, 5e-324, 1 - 2.0**-53, 2.0**-32, 2.0**-33, 1e300])
def test_multipliers_of_channels_are_those_of_each(m: list[float]) -> None:
    found = requantize_parameters(Rounding.FIXED32_DOUBLE, np.array(m))
    assert isinstance(found, FixedMultiplier)
    assert list(zip(found.q.tolist(), found.e.tolist(), strict=True)) == [quantize_multiplier(one) for one in m]


@pytest.mark.parametrize("wrong", [-1.0, math.inf, math.nan])
@pytest.mark.parametrize("rounding", list(Rounding))
def test_a_wrong_multiplier_of_a_channel_is_refused(rounding: Rounding, wrong: float) -> None:
    with pytest.raises(ValueError, match="multiplier must be finite and not negative"):
        requantize_parameters(rounding, np.array([0.5, wrong]))
