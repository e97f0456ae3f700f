"""Turns scales into multipliers, and multiplies integers by Q31 numbers in the roundings that runtimes use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdialect.arithmetic.choices import Multiplier, Rounding

# A multiplier (q, e) stands for q * 2^(e - 31) with q below 2^31, so the product wanted is x * q / 2^(31 - e).

INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1
EXPONENTIALS = {k: round(math.exp(-(2.0**k)) * 2**31) for k in range(-2, 5)}
"""e^-(2^k) in Q0.31 by k: one factor for each bit of an argument above a quarter."""
EXPONENTIAL_OF_EIGHTH = round(math.exp(-1 / 8) * 2**31)
"""e^-(1/8) in Q0.31."""
ONE_THIRD = round(2**31 / 3)
NEWTON_CONSTANT, NEWTON_SLOPE = round(48 / 17 * 2**29), round(-32 / 17 * 2**29)
"""The first guess of Newton's division, 48/17 - 32/17 * d, in Q2.29."""

IntArray = NDArray[np.int64]


def as_int64(values: ArrayLike) -> IntArray:
    """`values` as int64, the type all integer formulas here work in."""
    return np.asarray(values, dtype=np.int64)


def saturate_int32(values: IntArray) -> IntArray:
    """Clamp to the int32 range."""
    return np.clip(values, INT32_MIN, INT32_MAX)


def doubling_high_multiply(a: ArrayLike, b: ArrayLike, bits: int = 32) -> IntArray:
    """High half of 2 * a * b, rounded, for `bits`-wide operands (gemmlowp SaturatingRoundingDoublingHighMul).

    The original adds 2^(bits-2) to products that are not negative and 1 - 2^(bits-2) to others, then divides by
    2^(bits-1) towards zero.  For a negative product p, with h = 2^(bits-2) and d = 2h,
    trunc((p + 1 - h) / d) = floor((p + 1 - h + d - 1) / d) = floor((p + h) / d): one formula, ties go up.
    The only overflow, both operands at the minimum, saturates.
    """
    product = as_int64(a) * as_int64(b)
    high = (product + (1 << (bits - 2))) >> (bits - 1)
    return np.minimum(high, (1 << (bits - 1)) - 1)


def rounding_shift_right(values: ArrayLike, amount: ArrayLike) -> IntArray:
    """values / 2^amount with ties away from zero (gemmlowp RoundingDivideByPOT); 0 <= amount <= 62.

    A tie of a negative number must not move up, so the remainder has to exceed half by one there.
    """
    x, n = as_int64(values), as_int64(amount)
    mask = (np.int64(1) << n) - 1
    threshold = (mask >> 1) + (x < 0)
    return (x >> n) + ((x & mask) > threshold)


def saturating_shift_left(values: ArrayLike, amount: ArrayLike, bits: int = 32) -> IntArray:
    """values * 2^amount clamped to a signed `bits`-wide integer; `values` must fit that type."""
    limit = 1 << (bits - 1)
    # Beyond `bits` bits every value but zero has saturated, so the shift itself never overflows int64.
    shifted = as_int64(values) << np.minimum(as_int64(amount), bits - 1)
    return np.clip(shifted, -limit, limit - 1)


def multiply_by_quantized_multiplier(x: ArrayLike, q: ArrayLike, e: ArrayLike, rounding: Rounding) -> IntArray:
    """x * q * 2^(e - 31) rounded by `rounding` and clamped to int32.

    `x` holds int32 accumulators (less or plus one zero point), `q` and `e` broadcast against it: scalars, or one entry
    per channel of the last axis.  Shapes broadcast; the result is int64.

    `fixed64_up` and `fixed64_nearest` round the exact product once.  TVM writes them as ((x << max(e, 0)) * q + nudge)
    >> (31 + max(-e, 0)); the common factor 2^max(e, 0) cancels, and x * q needs 62 bits at most, so int64 suffices.
    `fixed64_double` (TOSA apply_scale_32 with double_round) adds to the nudge of `fixed64_up`, where more than 31
    bits are shifted out, 2^30 for x >= 0 and -2^30 for others.
    `fixed32_double` is what 32-bit registers do: x << max(e, 0) saturating, a rounding doubling high multiply, then a
    rounding right shift by max(-e, 0).  With q = 2^30, e = 1 (exactly one) every rounding mode is the identity; only
    `fixed32_double` saturates there, from 2^30 on.

    Raises:
        ValueError: the rounding mode has a float multiplier.
    """
    if not rounding.is_fixed:
        raise ValueError(f"rounding must be a fixed-point rounding mode, but got {rounding}")
    exponent = as_int64(e)
    if rounding is Rounding.FIXED32_DOUBLE:
        shifted = saturating_shift_left(saturate_int32(as_int64(x)), np.maximum(exponent, 0))
        return rounding_shift_right(doubling_high_multiply(shifted, q), np.maximum(-exponent, 0))
    product = as_int64(x) * as_int64(q)
    # Multipliers of 2^31 and more (e > 31) have no right shift left; there, anything but zero saturates.
    right = np.maximum(31 - exponent, 0)
    left = np.clip(exponent - 31, 0, 1)
    half = (np.int64(1) << right) >> 1
    nudge = half
    if rounding is Rounding.FIXED64_NEAREST:
        nudge = half - ((product < 0) & (right > 0))
    elif rounding is Rounding.FIXED64_DOUBLE:
        nudge = half + np.where(right > 31, np.where(as_int64(x) >= 0, 2**30, -(2**30)), 0)
    return saturate_int32(saturate_int32((product + nudge) >> right) << left)


# Below 2^-32 the shift would leave nothing of an int32; the multiplier is then flushed to zero, as TFLite does.
_SMALLEST_EXPONENT = -31
_REFUSED = "multiplier must be finite and not negative, but got {m}"


@dataclass(frozen=True)
class FixedMultiplier:
    """Multipliers q * 2^(e - 31), one per channel: `q` and `e` are int32[C]."""

    q: NDArray[np.int32]
    e: NDArray[np.int32]


@dataclass(frozen=True)
class FloatMultiplier:
    """Multipliers as float32[C]."""

    m: NDArray[np.float32]


RequantizeParameters = FixedMultiplier | FloatMultiplier


def real_multiplier(
    input_scale: float, weight_scales: Sequence[float], output_scale: float, multiplier: Multiplier
) -> NDArray[np.float64]:
    """M[c] = s_x * s_w[c] / s_y, float64[len(weight_scales)].

    acc * s_x * s_w is the f32 value of an accumulator, and an f32 value r is quantized to r / s_y + z_y; hence M.  In
    which precision the product and the quotient are rounded is `multiplier`.  A plain rescale has the weight scale 1.
    """
    weights = np.asarray(weight_scales, dtype=np.float64)
    if multiplier is Multiplier.F64:
        return np.float64(input_scale) * weights / np.float64(output_scale)
    product = np.float32(input_scale) * weights.astype(np.float32)
    if multiplier is Multiplier.F32_PRODUCT:
        return product.astype(np.float64) / np.float64(np.float32(output_scale))
    return (product / np.float32(output_scale)).astype(np.float64)


def quantize_multiplier(m: float) -> tuple[int, int]:
    """(q, e) with m ~ q * 2^(e - 31) and 2^30 <= q < 2^31; (0, 0) for zero and for anything below 2^-32.

    frexp gives m = f * 2^e with f in [1/2, 1), and q = round(f * 2^31), ties away.  f just below one rounds to 2^31,
    which int32 lacks: halve it and raise e.  TFLite and TVM agree on this step (TFLite QuantizeMultiplier).

    Raises:
        ValueError: `m` is negative, infinite or NaN.
    """
    if not (math.isfinite(m) and m >= 0):
        raise ValueError(_REFUSED.format(m=m))
    fraction, exponent = math.frexp(m)
    # fraction * 2^31 is exact and adding one half cannot round, since 53 bits hold both.
    q = math.floor(math.ldexp(fraction, 31) + 0.5)
    if q == 2**31:
        q, exponent = 2**30, exponent + 1
    if q == 0 or exponent < _SMALLEST_EXPONENT:
        return 0, 0
    return q, exponent


def requantize_parameters(rounding: Rounding, f32: NDArray[np.float64]) -> RequantizeParameters:
    """The real multipliers `f32`, float64[C], in the form that `rounding` multiplies by.

    Raises:
        ValueError: a multiplier is negative, infinite or NaN.
    """
    f32 = np.asarray(f32, np.float64)
    for m in f32[~(np.isfinite(f32) & (f32 >= 0))][:1]:
        raise ValueError(_REFUSED.format(m=float(m)))
    return quantized_multipliers(f32) if rounding.is_fixed else FloatMultiplier(f32.astype(np.float32))


def quantized_multipliers(m: NDArray[np.float64]) -> FixedMultiplier:
    """`quantize_multiplier` of each of float64[C], which are finite and not negative."""
    fraction, exponent = np.frexp(m)
    q = np.floor(np.ldexp(fraction, 31) + 0.5).astype(np.int64)
    is_beyond = q == 2**31
    q, e = np.where(is_beyond, 2**30, q), exponent + is_beyond
    is_zero = (q == 0) | (e < _SMALLEST_EXPONENT)
    return FixedMultiplier(np.where(is_zero, 0, q).astype(np.int32), np.where(is_zero, 0, e).astype(np.int32))


# Bits that a 32-bit sum of two products with 8-bit offsets leaves for the multipliers.
_SUM_BITS = 20
_LONGEST_SHIFT, _LARGEST_FACTOR = 40, 2**40


@dataclass(frozen=True)
class SumFactors:
    """A sum's factors ``lhs * 2^-shift`` and ``rhs * 2^-shift``."""

    lhs: int
    rhs: int
    shift: int


def sum_factors(lhs_scale: float, rhs_scale: float, output_scale: float) -> SumFactors:
    """The ratios s_l / s_y and s_r / s_y, float32, as integers that share a shift; the larger has 21 bits.

    With 2^e <= max(ratios) < 2^(e + 1) the shift is 20 - e and a factor half_even(ratio * 2^shift) (XNNPACK qs8-vadd).
    XNNPACK takes ratios in [2^-10, 2^8) alone; beyond that the shift stays in [1, 40] and factors end at 2^40, so that
    64 bits hold every sum.
    """
    ratios = [np.float32(scale) / np.float32(output_scale) for scale in (lhs_scale, rhs_scale)]
    exponent = int(np.frexp(max(ratios))[1]) - 1
    shift = min(max(_SUM_BITS - exponent, 1), _LONGEST_SHIFT)
    lhs, rhs = (min(round(math.ldexp(float(ratio), shift)), _LARGEST_FACTOR) for ratio in ratios)
    return SumFactors(lhs, rhs, shift)


def folded_count_multiplier(m: float, count: int) -> tuple[int, int]:
    """(q, e) of m / count as TFLite's MEAN forms it: q shifted up by floor(log2(count)), divided by count, truncated.

    The shift keeps q at 2^29 or more, unless it meets its bounds: at most 32, and never taking e below -31.
    """
    q, e = quantize_multiplier(m)
    shift = min(count.bit_length() - 1, 32, 31 + e)
    return (q << shift) // count, e - shift


def mean_parameters(rounding: Rounding, f32: NDArray[np.float64], count: int) -> RequantizeParameters:
    """The multiplier of the sum of `count` values, from the real multiplier `f32` of their mean, float64[1].

    Float rounding modes divide it before it is rounded, fixed-point ones see `folded_count_multiplier`.
    """
    if not rounding.is_fixed:
        return requantize_parameters(rounding, f32 / count)
    q, e = folded_count_multiplier(float(f32[0]), count)
    return FixedMultiplier(np.array([q], np.int32), np.array([e], np.int32))


FloatSum = tuple[np.float32, np.float32, np.float32]


def float_sum_numbers(scales: Sequence[float], zero_points: Sequence[int]) -> FloatSum:
    """r_1, r_2 and k of `float_sum`; `scales` and `zero_points` are of the first operand, the second and the sum.

    r = s / s_y and k = z_y - fma(r_1, z_1, r_2 * z_2), in float32.
    """
    first, second = (np.float32(scale) / np.float32(scales[2]) for scale in scales[:2])
    inner = np.float32(second * np.float32(zero_points[1]))
    total = _multiply_add(np.array(zero_points[0]), first, inner)
    return first, second, np.float32(np.float32(zero_points[2]) - total)


def float_sum(first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]], numbers: FloatSum) -> IntArray:
    """half_even(fma(q_1, r_1, fma(q_2, r_2, k))) clamped to int32, with fma(x, m, c) = x * m + c rounded once.

    The order of MLAS, ONNX Runtime's kernels, on CPUs that have FMA.
    """
    total = _multiply_add(first, numbers[0], _multiply_add(second, numbers[1], numbers[2]))
    # Beyond int32 only the side matters, and float32 reaches where int64 does not.
    bounds = np.iinfo(np.int32)
    return np.clip(np.rint(total.astype(np.float64)), bounds.min, bounds.max).astype(np.int64)


def _multiply_add(
    values: NDArray[np.integer[Any]], ratio: np.float32, addend: NDArray[np.float32] | np.float32
) -> NDArray[np.float32]:
    """quantized values * ratio + addend; in float64 the product of a quantized value and a float32 number is exact."""
    with np.errstate(over="ignore"):
        return np.asarray(values.astype(np.float64) * np.float64(ratio) + np.float64(addend), np.float32)
