"""Additions, expressions and scales, compared with exact or independent arithmetic."""

import math
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
import torch
from arithmetic import plain_arithmetic as plain
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.arithmetic import (
    AddArithmetic,
    BinaryQuantization,
    FloatRounding,
    Multiplier,
    NanPolicy,
    QuantParams,
    Rounding,
    Scaling,
    SumFactors,
    quantize_array,
    quantize_multiplier,
    requantize_f32,
    same_scale,
    scale_factors,
    sum_factors,
)
from qdialect.arithmetic.elementwise import add, div_fixed
from qdialect.arithmetic.expressions import Alpha, Input

AFFINES = st.builds(QuantParams, st.floats(2.0**-8, 0.5, width=32), st.integers(-128, 127))
QUANTIZED = st.lists(st.integers(-128, 127), min_size=4, max_size=4).map(
    lambda quantized: np.array(quantized, dtype=np.int8)
)


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


def test_quotients_by_zero_are_the_end_on_the_side_of_the_dividend() -> None:
    quantization = BinaryQuantization(QuantParams(0.05, 3), QuantParams(0.02, 7), QuantParams(0.25, 9), (-100, 90))
    found = div_fixed(np.array([-128, 2, 3, 4, 127], np.int8), np.array([7], np.int8), quantization)
    assert found.tolist() == [-100, -100, 9, 90, 90]


# Expressions, evaluated in the type of what they take.

X = Input(0)


def test_numbers_are_rounded_to_the_type_of_the_values() -> None:
    x = np.array([1.0], np.float32)
    assert (X * 0.1)(x)[0] == np.float32(0.1)
    assert (X * Alpha())(x, alpha=0.1)[0] == np.float32(0.1)
    assert (X * 0.1)(x.astype(np.float64))[0] == 0.1


# Reciprocals of scales against PyTorch, at ties and with scales that no float32 is; and when two scales are one.

# Registers the operators of exported programs.
import_module("torch.ao.quantization.fx._decomposed")
# Equal as float32; the first is what a .pt2 file holds, the second what a text says.
CLOSE = (0.17717300355434418, 0.177173)
_WHOLE = (-(2**31), 2**31 - 1)


def ties(scale: float) -> NDArray[np.float32]:
    """The 720 float32 numbers closest to the ties between the quantized values -360 and 360."""
    return ((np.arange(-360, 360) + 0.5) * scale).astype(np.float32)


def quantized(x: NDArray[np.float32], scale: float, scaling: Scaling) -> NDArray[np.int32]:
    how = (FloatRounding.HALF_EVEN, scaling, NanPolicy.ZERO_POINT)
    return quantize_array(x, scale, 0, 0, np.int32, *how).astype(np.int32)


def decomposed(x: NDArray[np.float32], scale: float) -> NDArray[np.int32]:
    """PyTorch's operator of exported programs."""
    quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default
    return quantize(torch.tensor(x), scale, 0, *_WHOLE, torch.int32).numpy()


SCALES = [0.03, *CLOSE, *(10.0 ** np.random.default_rng(5).uniform(-4, 2, 300)).tolist()]


def test_ties_are_those_of_exported_programs() -> None:
    for scale in SCALES:
        np.testing.assert_array_equal(quantized(ties(scale), scale, Scaling.RECIPROCAL), decomposed(ties(scale), scale))


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_ties_are_those_of_quantized_tensors() -> None:
    for scale in SCALES:
        found = quantized(ties(scale), scale, Scaling.RECIPROCAL_F32)
        wanted = torch.quantize_per_tensor(torch.tensor(ties(scale)), scale, 0, torch.qint32).int_repr()
        np.testing.assert_array_equal(found, wanted.numpy())


@pytest.mark.parametrize("scaling", [Scaling.RECIPROCAL, Scaling.RECIPROCAL_F32, Scaling.DIVIDE])
def test_the_stage_of_a_fused_op_quantizes_likewise(scaling: Scaling) -> None:
    for scale in SCALES:
        found = requantize_f32(ties(scale), scale, 0, *_WHOLE, Rounding.F32_RNE_ZP_LAST, scaling)
        np.testing.assert_array_equal(found, quantized(ties(scale), scale, Scaling(scaling.value)))


def test_scales_of_channels() -> None:
    """PyTorch divides one by float32 scales in float32: both reciprocals are the same there."""
    scales = np.array(SCALES, dtype=np.float32)
    x = np.stack([ties(float(scale)) for scale in scales])
    channels = torch.ops.quantized_decomposed.quantize_per_channel.default
    points = torch.zeros(len(scales), dtype=torch.int64)
    wanted = channels(torch.tensor(x), torch.tensor(scales), points, 0, *_WHOLE, torch.int32)
    for scaling in (Scaling.RECIPROCAL, Scaling.RECIPROCAL_F32):
        how = (FloatRounding.HALF_EVEN, scaling, NanPolicy.ZERO_POINT)
        np.testing.assert_array_equal(
            quantize_array(x, scales.astype(np.float64), np.zeros(len(scales)), 0, np.int32, *how), wanted.numpy()
        )


@given(scale=st.floats(2.0**-60, 2.0**30))
def test_factors_equal_exact_arithmetic(scale: float) -> None:
    assert scale_factors(scale, Scaling.DIVIDE) == plain.float32(scale)
    assert scale_factors(scale, Scaling.RECIPROCAL) == plain.float32(1 / scale)
    assert scale_factors(scale, Scaling.RECIPROCAL_F32) == plain.float32(1 / plain.float32(scale))


def test_scales_that_are_one_float32_are_the_same() -> None:
    assert same_scale(*CLOSE)
    assert not same_scale(0.177173, float(np.nextafter(np.float32(0.177173), np.float32(1))))
