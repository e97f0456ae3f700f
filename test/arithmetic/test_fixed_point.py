"""Fixed point, requantization, 16-bit arithmetic and inverse roots equal exact integers over their whole range."""

import math
from fractions import Fraction
from math import exp, floor

import numpy as np
import pytest
from arithmetic import plain_arithmetic as plain
from hypothesis import assume, example, given
from hypothesis import strategies as st

from qdialect.arithmetic import (
    FixedMultiplier,
    Multiplier,
    Rounding,
    doubling_high_multiply,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    real_multiplier,
    requantize,
    requantize_parameters,
    saturating_shift_left,
)
from qdialect.arithmetic.choices import I16Rounding
from qdialect.arithmetic.fixed_point_functions import inverse_roots
from qdialect.arithmetic.machine import NUMPY, doubling_high, rounded_right, saturated_left
from qdialect.arithmetic.requantization import i16_requantize, reduced_multiplier, reduced_multipliers
from qdialect.arithmetic.tflite_tables import sigmoid_lines

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


@given(a=INT32, b=INT32)
@example(a=plain.INT32_MIN, b=plain.INT32_MIN)
@example(a=-1, b=2**30)
@example(a=1, b=2**30)
def test_doubling_high_multiply_equals_truncating_division(a: int, b: int) -> None:
    assert doubling_high_multiply(a, b) == plain.doubling_high_multiply(a, b)


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


# Multipliers from scales, and the requantization rounding modes against exact arithmetic.

ACCUMULATORS = st.one_of(
    st.integers(plain.INT32_MIN, plain.INT32_MAX),
    st.integers(-100_000, 100_000),
    st.sampled_from([plain.INT32_MIN, plain.INT32_MAX, -(2**24) - 1, 2**24 + 1]),
)
MULTIPLIERS = st.one_of(
    st.floats(2.0**-40, 2.0**40), st.floats(1e-4, 0.1), st.integers(-31, 31).map(lambda e: 2.0**e), st.floats(1.0, 1e30)
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
def test_requantized_ties_equal_exact_arithmetic(rounding: Rounding, odd: int, zero_point: int, shift: int) -> None:
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


@given(m=st.floats(2.0**-32, 2.0**40))
@example(m=1.0)
@example(m=math.nextafter(1.0, 0.0))
@example(m=2.0**-32)
def test_quantized_multiplier_is_the_nearest(m: float) -> None:
    q, e = quantize_multiplier(m)
    assert 2**30 <= q < 2**31
    assert abs(Fraction(m) - Fraction(q) * Fraction(2) ** (e - 31)) <= Fraction(2) ** (e - 32)


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


@given(st.lists(st.one_of(MULTIPLIERS, st.floats(0, 2.0**-28), st.just(1 - 2.0**-40)), min_size=1, max_size=9))
@example([0.0, 5e-324, 1 - 2.0**-53, 2.0**-32, 2.0**-33, 1e300])
def test_multipliers_of_channels_are_those_of_each(m: list[float]) -> None:
    found = requantize_parameters(Rounding.FIXED32_DOUBLE, np.array(m))
    assert isinstance(found, FixedMultiplier)
    assert list(zip(found.q.tolist(), found.e.tolist(), strict=True)) == [quantize_multiplier(one) for one in m]


# Requantization to 16 bits and its tables, against exact arithmetic.

LOW, HIGH = -(2**15), 2**15 - 1
TIES = np.array([-3, -2, -1, 0, 1, 2, 3, 5])


def requantized(acc: np.ndarray, factor: float, rounding: I16Rounding) -> list[int]:
    return i16_requantize(acc.astype(np.int64), factor, (1.0,), 1.0, 0, LOW, HIGH, rounding, Multiplier.F64).tolist()


def test_ties() -> None:
    assert requantized(TIES, 0.5, I16Rounding.FIXED16_UP) == [-1, -1, 0, 0, 1, 1, 2, 3]
    assert requantized(TIES, 0.5, I16Rounding.F64_NEAREST) == [-2, -1, -1, 0, 1, 1, 2, 3]
    assert requantized(TIES, 0.5, I16Rounding.F64_EVEN) == [-2, -1, 0, 0, 0, 1, 2, 2]
    # By 1/4 the first rounding takes half of -1 up to 0, half of 1 to 1; the second takes ties away from zero.
    assert requantized(TIES, 0.25, I16Rounding.FIXED32_DOUBLE) == [-1, -1, 0, 0, 1, 1, 1, 2]


def test_multipliers_of_15_bits() -> None:
    assert reduced_multiplier(2**30, 1) == (2**14, 14)
    assert reduced_multiplier(2**31 - 1, 0) == (2**15 - 1, 15)
    assert reduced_multiplier(0x4000_8000, -3) == (0x4001, 18)
    with pytest.raises(ValueError, match=r"multipliers must be below 2\^14"):
        reduced_multipliers(np.array([2.0**14]))


def test_a_product_of_doubles_is_rounded_once() -> None:
    """Against the exact product of the integer and the double, which is next to no tie here."""
    rng = np.random.default_rng(0)
    acc, factor = rng.integers(-(2**45), 2**45, 1000), 7.3e-11
    wanted = [min(max(floor(Fraction(int(a)) * Fraction(factor) + Fraction(1, 2)), LOW), HIGH) for a in acc]
    for rounding in (I16Rounding.F64_NEAREST, I16Rounding.F64_EVEN):
        assert requantized(acc, factor, rounding) == wanted


def test_the_sigmoid_s_table_lies_above_the_function_between_its_ends() -> None:
    lines = sigmoid_lines(9, 65534)
    assert (len(lines.bases), lines.bases[0], lines.bases[-1], lines.slopes[-1]) == (256, 2**15, 65534, 0)
    values = [65536 / (1 + exp(-i / 24)) for i in range(255)]
    assert np.abs(lines.bases[:255] - values).max() < 1.2


# The fixed-point inverse square root is near the real one, and exact where its definition says so.


@pytest.mark.parametrize("value", [*range(2, 300), 65025 * 7, 2**28, 2**29 - 1, 2**29, 2**31 - 1])
def test_is_near_the_real_root(value: int) -> None:
    (q,), (shift,) = inverse_roots(np.array([value]))
    assert shift >= 0
    assert abs(q * 2.0 ** float(-31 - shift) * math.sqrt(value) - 1) < 1e-5


@given(st.lists(st.integers(0, 30).flatmap(lambda bits: st.integers(0, 2 ** (bits + 1) - 1)), min_size=1))
def test_equals_exact_integers(values: list[int]) -> None:
    assert list(zip(*inverse_roots(np.array(values)), strict=True)) == [plain.inverse_root(value) for value in values]
