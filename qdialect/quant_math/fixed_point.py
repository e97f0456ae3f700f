"""Multiplication of integers by a Q31 number with an exponent, in the roundings that runtimes use.

A multiplier (q, e) stands for q * 2^(e - 31) with q below 2^31, so the product wanted is x * q / 2^(31 - e).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdialect.quant_math.choices import Rounding

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
    """x * q * 2^(e - 31) rounded as `rounding` says and clamped to int32.

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
    nudge = half + _second_nudge(as_int64(x), product, right, rounding)
    return saturate_int32(saturate_int32((product + nudge) >> right) << left)


def _second_nudge(x: IntArray, product: IntArray, right: IntArray, rounding: Rounding) -> IntArray:
    """What a rounding mode of one rounding adds to half of the last bit that stays."""
    if rounding is Rounding.FIXED64_NEAREST:
        return -as_int64((product < 0) & (right > 0))
    if rounding is Rounding.FIXED64_DOUBLE:
        return np.where(right > 31, np.where(x >= 0, 2**30, -(2**30)), 0)
    return np.zeros((), dtype=np.int64)
