"""Additions, products and concatenation on drawn operands, against exact or independent arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import plain_arithmetic as plain

from qdialect.arithmetic import (
    AddArithmetic,
    BinaryQuantization,
    Multiplier,
    QuantParams,
    Rounding,
    SumFactors,
    quantize_multiplier,
    sum_factors,
)
from qdialect.arithmetic.elementwise import add, concat, mul, rescale
from qdialect.reference.movement import pad, reshape, transpose

AFFINES = st.builds(QuantParams, st.floats(2.0**-8, 0.5, width=32), st.integers(-128, 127))
QUANTIZED = st.lists(st.integers(-128, 127), min_size=4, max_size=4).map(
    lambda quantized: np.array(quantized, dtype=np.int8)
)


@given(lhs=QUANTIZED, rhs=QUANTIZED, left=AFFINES, right=AFFINES, output=AFFINES)
def test_every_addition_is_near_the_real_sum(
    lhs: np.ndarray, rhs: np.ndarray, left: QuantParams, right: QuantParams, output: QuantParams
) -> None:
    f32 = left.scale * (lhs.astype(float) - left.zero_point) + right.scale * (rhs.astype(float) - right.zero_point)
    wanted = np.clip(f32 / output.scale + output.zero_point, -128, 127)
    for arithmetic, error in (
        (AddArithmetic.REQUANTIZE_EACH, 1.01),
        (AddArithmetic.SHIFTED_FIXED, 0.51),
        (AddArithmetic.SHIFTED_SINGLE, 0.51),
        (AddArithmetic.SHIFTED_DOUBLE, 0.76),
        (AddArithmetic.FLOAT_ONCE, 0.51),
        (AddArithmetic.FIXED_ONCE, 0.51),
    ):
        got = add(
            lhs,
            rhs,
            BinaryQuantization(left, right, output, (-128, 127)),
            arithmetic,
            Rounding.FIXED64_UP,
            Multiplier.F64,
        )
        assert np.all(np.abs(got - wanted) <= error)


@pytest.mark.parametrize(
    ("arithmetic", "each", "sums"),
    [
        (AddArithmetic.SHIFTED_FIXED, Rounding.FIXED32_DOUBLE, Rounding.FIXED32_DOUBLE),
        (AddArithmetic.SHIFTED_SINGLE, Rounding.FIXED64_UP, Rounding.FIXED64_UP),
        (AddArithmetic.SHIFTED_DOUBLE, Rounding.FIXED64_UP, Rounding.FIXED64_DOUBLE),
    ],
)
@given(lhs=QUANTIZED, rhs=QUANTIZED, left=AFFINES, right=AFFINES, output=AFFINES)
def test_shifted_addition_equals_exact_arithmetic(
    arithmetic: AddArithmetic,
    each: Rounding,
    sums: Rounding,
    lhs: np.ndarray,
    rhs: np.ndarray,
    left: QuantParams,
    right: QuantParams,
    output: QuantParams,
) -> None:
    got = add(
        lhs,
        rhs,
        BinaryQuantization(left, right, output, (-128, 127)),
        arithmetic,
        Rounding.F32_RNE_ZP_LAST,
        Multiplier.F64,
    )
    twice = 2 * max(left.scale, right.scale)
    multipliers = [quantize_multiplier(affine.scale / twice) for affine in (left, right)]
    last = quantize_multiplier(twice / (2**20 * output.scale))
    for a, b, quantized in zip(lhs.tolist(), rhs.tolist(), got.tolist(), strict=True):
        total = 0
        for value, affine, (q, e) in zip((a, b), (left, right), multipliers, strict=True):
            total += plain.multiply((value - affine.zero_point) << 20, q, e, each)
        scaled = plain.multiply(total, *last, sums)
        assert quantized == plain.clamp(scaled + output.zero_point, -128, 127)


@given(lhs=QUANTIZED, rhs=QUANTIZED, left=AFFINES, right=AFFINES, output=AFFINES)
def test_addition_of_one_shift_equals_exact_arithmetic(
    lhs: np.ndarray, rhs: np.ndarray, left: QuantParams, right: QuantParams, output: QuantParams
) -> None:
    got = add(
        lhs,
        rhs,
        BinaryQuantization(left, right, output, (-128, 127)),
        AddArithmetic.FIXED_ONCE,
        Rounding.FIXED64_UP,
        Multiplier.F64,
    )
    ratios = [np.float32(affine.scale) / np.float32(output.scale) for affine in (left, right)]
    shift = 20 - math.floor(math.log2(max(ratios)))
    factors = [round(Fraction(float(ratio)) * 2**shift) for ratio in ratios]
    assert 2**20 <= max(factors) <= 2**21
    for a, b, quantized in zip(lhs.tolist(), rhs.tolist(), got.tolist(), strict=True):
        total = (a - left.zero_point) * factors[0] + (b - right.zero_point) * factors[1]
        wanted = math.floor(Fraction(total, 2**shift) + Fraction(1, 2)) + output.zero_point
        assert quantized == plain.clamp(wanted, -128, 127)


def test_sum_factors_beyond_the_range_of_xnnpack_fit_64_bits() -> None:
    assert sum_factors(2.0**30, 2.0**-60, 2.0**-60) == SumFactors(2**40, 2, 1)
    assert sum_factors(2.0**-60, 2.0**-60, 2.0**30) == SumFactors(0, 0, 40)


def test_each_operand_is_rounded_alone() -> None:
    """1/2 + 1/2 is two where both halves round up, and one where the sum is rounded."""
    one, half, unit = np.array([1], dtype=np.uint8), QuantParams(0.5, 0), QuantParams(1.0, 0)
    results = {
        arithmetic: int(
            add(
                one,
                one,
                BinaryQuantization(half, half, unit, (0, 255)),
                arithmetic,
                Rounding.FIXED64_UP,
                Multiplier.F64,
            )[0]
        )
        for arithmetic in AddArithmetic
    }
    assert results.pop(AddArithmetic.REQUANTIZE_EACH) == 2
    assert set(results.values()) == {1}


@pytest.mark.parametrize("multiplier", list(Multiplier))
@given(lhs=QUANTIZED, rhs=QUANTIZED, left=AFFINES, right=AFFINES, output=AFFINES)
def test_products_round_once(
    multiplier: Multiplier, lhs: np.ndarray, rhs: np.ndarray, left: QuantParams, right: QuantParams, output: QuantParams
) -> None:
    got = mul(lhs, rhs, BinaryQuantization(left, right, output, (-128, 127)), Rounding.FIXED64_NEAREST, multiplier)
    ratio = Fraction(left.scale) * Fraction(right.scale) / Fraction(output.scale)
    for a, b, quantized in zip(lhs.tolist(), rhs.tolist(), got.tolist(), strict=True):
        f32 = (a - left.zero_point) * (b - right.zero_point) * ratio + output.zero_point
        assert abs(quantized - min(max(f32, -128), 127)) <= Fraction(51, 100)


def test_operands_broadcast() -> None:
    lhs, rhs = np.arange(6, dtype=np.int8).reshape(2, 3), np.array([[10], [20]], dtype=np.int8)
    unit = QuantParams(1.0, 0)
    how = (Rounding.FIXED64_UP, Multiplier.F64)
    assert add(
        lhs, rhs, BinaryQuantization(unit, unit, unit, (-128, 127)), AddArithmetic.REQUANTIZE_EACH, *how
    ).tolist() == [
        [10, 11, 12],
        [23, 24, 25],
    ]
    assert mul(lhs, rhs, BinaryQuantization(unit, unit, unit, (-128, 60)), *how).tolist() == [[0, 10, 20], [60, 60, 60]]


@pytest.mark.parametrize("rounding", list(Rounding))
def test_equal_parameters_are_never_rescaled(rounding: Rounding) -> None:
    quantized, affine = np.arange(-128, 128, dtype=np.int8), QuantParams(0.1, 5)
    assert rescale(quantized, affine, affine, rounding, Multiplier.F32).tolist() == quantized.tolist()


def test_concat_rescales_what_differs_and_clamps() -> None:
    first, second = np.array([[100, -100]], dtype=np.int8), np.array([[100, -3]], dtype=np.int8)
    same, coarse = QuantParams(0.5, 1), QuantParams(1.0, 0)
    how = (Rounding.FIXED64_UP, Multiplier.F64)
    assert concat([first, second], [same, coarse], 1, same, (-128, 127), *how).tolist() == [[100, -100, 127, -5]]
    assert concat([first, second], [same, coarse], 0, same, (-128, 127), *how).tolist() == [[100, -100], [127, -5]]


def test_data_movement() -> None:
    quantized = np.arange(6, dtype=np.int8).reshape(1, 2, 3)
    assert pad(quantized, (0, 1, 0), (0, 0, 2), -7).tolist() == [[[-7] * 5, [0, 1, 2, -7, -7], [3, 4, 5, -7, -7]]]
    assert reshape(quantized, (3, 2)).tolist() == [[0, 1], [2, 3], [4, 5]]
    turned = transpose(quantized, (2, 0, 1))
    assert turned.tolist() == [[[0, 3]], [[1, 4]], [[2, 5]]]
    assert turned.flags.c_contiguous
