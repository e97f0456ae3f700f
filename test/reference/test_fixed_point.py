"""Vectorized fixed-point arithmetic equals exact integers, over the whole int32 and exponent range."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference import plain_arithmetic as plain

from qdialect.arithmetic import (
    Rounding,
    doubling_high_multiply,
    multiply_by_quantized_multiplier,
    rounding_shift_right,
    saturating_shift_left,
)
from qdialect.arithmetic.machine import NUMPY, doubling_high, rounded_right, saturated_left

FIXED = [rounding for rounding in Rounding if rounding.is_fixed]
INT32 = st.one_of(
    st.integers(plain.INT32_MIN, plain.INT32_MAX),
    st.integers(-300, 300),
    st.sampled_from([plain.INT32_MIN, plain.INT32_MIN + 1, -(2**30), 2**30, plain.INT32_MAX]),
)
Q31 = st.one_of(st.integers(2**30, 2**31 - 1), st.sampled_from([2**30, 2**30 + 1, 2**31 - 1]))


@pytest.mark.parametrize("rounding", FIXED)
@given(x=INT32, q=Q31, e=st.integers(-31, 40))
@example(x=plain.INT32_MIN, q=2**31 - 1, e=31)
@example(x=plain.INT32_MAX, q=2**31 - 1, e=40)
@example(x=plain.INT32_MIN, q=2**30, e=-31)
@example(x=-8, q=2**30, e=-3)
def test_multiply_equals_exact_arithmetic(rounding: Rounding, x: int, q: int, e: int) -> None:
    assert multiply_by_quantized_multiplier(x, q, e, rounding) == plain.multiply(x, q, e, rounding)


@pytest.mark.parametrize("rounding", FIXED)
@given(half=st.integers(-5000, 5000), shift=st.integers(1, 18))
def test_ties_equal_exact_arithmetic(rounding: Rounding, half: int, shift: int) -> None:
    """(2k + 1) * 2^(shift - 1) over 2^shift is a tie for every k."""
    x = (2 * half + 1) << (shift - 1)
    e = 1 - shift
    assert multiply_by_quantized_multiplier(x, 2**30, e, rounding) == plain.multiply(x, 2**30, e, rounding)


def test_the_rounding_modes_differ_at_ties() -> None:
    x, q, e = np.array([-3, -1, 1, 3]), 2**30, 0
    results = {rounding: multiply_by_quantized_multiplier(x, q, e, rounding).tolist() for rounding in FIXED}
    assert results[Rounding.FIXED64_UP] == [-1, 0, 1, 2]
    assert results[Rounding.FIXED64_NEAREST] == [-2, -1, 1, 2]
    # With no right shift pending there is only the first rounding, which goes up.
    assert results[Rounding.FIXED32_DOUBLE] == [-1, 0, 1, 2]
    assert results[Rounding.FIXED64_DOUBLE] == [-1, 0, 1, 2]
    # 5 * 3/32 lies below one half by 1/32, less than the 2^30 / 2^34 of two roundings.
    near = [multiply_by_quantized_multiplier([-5, 5], 3 << 29, -3, rounding).tolist() for rounding in FIXED]
    assert near == [[0, 0], [0, 0], [-1, 1], [-1, 1]]


@pytest.mark.parametrize("rounding", FIXED)
@given(x=st.integers(-(2**30), 2**30 - 1))
def test_multiplier_one_is_the_identity(rounding: Rounding, x: int) -> None:
    assert multiply_by_quantized_multiplier(x, 2**30, 1, rounding) == x


@pytest.mark.parametrize("rounding", FIXED)
def test_channels_broadcast_along_the_last_axis(rounding: Rounding) -> None:
    x = np.arange(-600, 600).reshape(4, 100, 3) * 7919
    q, e = np.array([2**30, 1522383435, 2**31 - 1], dtype=np.int32), np.array([-3, -6, 2], dtype=np.int32)
    result = multiply_by_quantized_multiplier(x, q, e, rounding)
    assert result.shape == x.shape
    for index in np.ndindex(*x.shape):
        channel = index[-1]
        assert result[index] == plain.multiply(int(x[index]), int(q[channel]), int(e[channel]), rounding)


def test_a_float_rounding_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="must be a fixed-point rounding mode, but got f32_up_zp_first"):
        multiply_by_quantized_multiplier(1, 2**30, 1, Rounding.F32_UP_ZP_FIRST)


@given(a=INT32, b=INT32)
@example(a=plain.INT32_MIN, b=plain.INT32_MIN)
@example(a=-1, b=2**30)
@example(a=1, b=2**30)
def test_doubling_high_multiply_equals_truncating_division(a: int, b: int) -> None:
    assert doubling_high_multiply(a, b) == plain.doubling_high_multiply(a, b)


@given(x=INT32, amount=st.integers(0, 62))
def test_rounding_shift_ties_away_from_zero(x: int, amount: int) -> None:
    assert rounding_shift_right(x, amount) == plain.half_away(plain.Fraction(x, 2**amount))


@pytest.mark.parametrize("bits", [16, 32])
@given(data=st.data())
def test_left_shift_saturates(bits: int, data: st.DataObject) -> None:
    limit = 2 ** (bits - 1)
    x, amount = data.draw(st.integers(-limit, limit - 1)), data.draw(st.integers(0, 60))
    assert saturating_shift_left(x, amount, bits) == plain.clamp(x << amount, -limit, limit - 1)


@given(a=INT32, b=INT32.filter(lambda b: b > plain.INT32_MIN), count=st.integers(0, 31))
def test_the_machine_of_ops_equals_exact_arithmetic(a: int, b: int, count: int) -> None:
    lhs, rhs = np.array([a]), np.array([b])
    assert doubling_high(NUMPY, lhs, rhs) == plain.doubling_high_multiply(a, b)
    assert saturated_left(NUMPY, lhs, count) == saturating_shift_left(a, count)
    assert rounded_right(NUMPY, lhs, np.array([count])) == plain.half_away(Fraction(a, 2**count))


def test_the_machine_of_ops_has_the_widths_of_its_types() -> None:
    m, word = NUMPY, np.array([-1, 2**31 - 1, 1], np.int32)
    assert m.add(word, m.constant(1, "i32")).tolist() == [0, -(2**31), 2]
    assert m.binary("arith.shrui", word, m.constant(31, "i32")).tolist() == [1, 0, 0]
    assert m.binary("arith.divsi", np.array([-7, 7]), m.constant(2, "i64")).tolist() == [-3, 3]
    assert m.unary("math.ctlz", word).tolist() == [0, 1, 31]
    assert m.cast("arith.extui", word, "i64").tolist() == [2**32 - 1, 2**31 - 1, 1]
    assert m.cast("arith.trunci", np.array([2**32 + 5]), "i32").tolist() == [5]
    assert m.cast("arith.bitcast", m.constant(1.0, "f32"), "i32") == 0x3F800000
