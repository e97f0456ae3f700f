"""The tables of softmax: TFLite's fixed-point exponentials and reciprocal, and ONNX Runtime's float32 exponentials."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.multipliers import (
    EXPONENTIAL_OF_EIGHTH,
    EXPONENTIALS,
    NEWTON_CONSTANT,
    NEWTON_SLOPE,
    ONE_THIRD,
    IntArray,
    doubling_high_multiply,
    quantize_multiplier,
    rounding_shift_right,
    saturating_shift_left,
)

_ONE_Q31 = 2**31 - 1
# Scaled differences are Q5.26; sums of exponentials are Q12.19.
_DIFF_INTEGER_BITS = 5
_DIFF_FRACTION_BITS = 26
_SUM_INTEGER_BITS = 12


@dataclass(frozen=True)
class SoftmaxTables:
    """e^(-d * scale * beta) for the distance d = 0..255 of a value from the row's maximum.

    `exponentials` are Q0.31, zero beyond the radius the fixed point can hold; `addends` are the same in Q12.19, the
    format of the sum.  Both are int32[256].
    """

    exponentials: NDArray[np.int32]
    addends: NDArray[np.int32]


def softmax_tables(input_scale: float, beta: float) -> SoftmaxTables:
    """Tables of TFLite's SOFTMAX: input_scale * beta in Q5.26 multiplies the distance, then a fixed-point exponential.

    The multiplier input_scale * beta * 2^26, at most 2^31 - 1, has a left shift e.  Distances above
    floor(31 * 2^26 / 2^e) would leave Q5.26 and count as zero probability.

    Raises:
        ValueError: input_scale * beta * 2^26 is not above 1, which the kernel refuses.
    """
    f32 = min(beta * input_scale * 2**_DIFF_FRACTION_BITS, float(_ONE_Q31))
    if not f32 > 1:
        raise ValueError(f"input scale times beta must exceed 2^-{_DIFF_FRACTION_BITS}, but got {beta * input_scale}")
    q, e = quantize_multiplier(f32)
    radius = (((1 << _DIFF_INTEGER_BITS) - 1) << _DIFF_FRACTION_BITS) >> e
    distances = np.arange(256, dtype=np.int64)
    inside = distances <= radius
    scaled = doubling_high_multiply(-np.where(inside, distances, 0) << e, q)
    exponentials = np.where(inside, exp_on_negative_values(scaled), 0)
    addends = rounding_shift_right(exponentials, _SUM_INTEGER_BITS)
    return SoftmaxTables(exponentials.astype(np.int32), addends.astype(np.int32))


def exp_on_negative_values(values: IntArray) -> IntArray:
    """e^x in Q0.31 for x <= 0 in Q5.26 (gemmlowp).

    x = r - m with r in [-1/4, 0) and m a multiple of a quarter: a polynomial gives e^r, and each bit of m multiplies by
    its power.  x = 0 is the largest Q0.31 number.
    """
    quarter = 1 << (_DIFF_FRACTION_BITS - 2)
    remainder = (values & (quarter - 1)) - quarter
    result = _exp_on_quarter(saturating_shift_left(remainder, _DIFF_INTEGER_BITS))
    whole = remainder - values
    for power, factor in EXPONENTIALS.items():
        has_bit = (whole >> (_DIFF_FRACTION_BITS + power)) & 1
        result = np.where(has_bit == 1, doubling_high_multiply(result, factor), result)
    return np.where(values == 0, _ONE_Q31, result)


def _exp_on_quarter(values: IntArray) -> IntArray:
    """e^a in Q0.31 for a in [-1/4, 0), Q0.31: with x = a + 1/8, e^-1/8 * (1 + x + x^2/2 + x^3/6 + x^4/24)."""
    x = values + (1 << 28)
    x2 = doubling_high_multiply(x, x)
    x3 = doubling_high_multiply(x2, x)
    x4 = doubling_high_multiply(x2, x2)
    # (x^4/4 + x^3) / 3 + x^2, halved, is the sum of the three higher terms.
    cubic = doubling_high_multiply(rounding_shift_right(x4, 2) + x3, ONE_THIRD)
    higher = rounding_shift_right(cubic + x2, 1)
    return EXPONENTIAL_OF_EIGHTH + doubling_high_multiply(EXPONENTIAL_OF_EIGHTH, x + higher)


def reciprocal(total: IntArray) -> tuple[IntArray, IntArray]:
    """(r, n) with 1 / total ~ r * 2^-31 * 2^-n, for a positive Q12.19 `total` below 2^31; r is Q0.31.

    The leading zeros of `total` normalize it to 1 + f with f in [0, 1), and n counts the integer bits it used.
    """
    zeros = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    fraction = ((total << zeros) & 0xFFFFFFFF) - (1 << 31)
    return _one_over_one_plus(fraction), _SUM_INTEGER_BITS - zeros


def _one_over_one_plus(fraction: IntArray) -> IntArray:
    """1 / (1 + f) in Q0.31 for f in [0, 1), Q0.31 (gemmlowp): three Newton steps on d = (1 + f) / 2, x in Q2.29."""
    half_denominator = (fraction + _ONE_Q31 + 1) >> 1
    x = NEWTON_CONSTANT + doubling_high_multiply(half_denominator, NEWTON_SLOPE)
    for _ in range(3):
        error = (1 << 29) - doubling_high_multiply(half_denominator, x)
        x = x + saturating_shift_left(doubling_high_multiply(x, error), 2)
    return saturating_shift_left(x, 1)


# How far, in powers of e, ONNX Runtime keeps the largest sum of a row below the largest float32.
_RESERVE = np.float32(5)


def ort_entries(input_scale: float, beta: float, extent: int) -> NDArray[np.float32]:
    """float32[256]: e^(t - d * s) for the distance d from the row's maximum, s = float32(s_x) * float32(beta).

    t = log(largest float32 / extent) - 5, in float32, keeps the sum of `extent` entries finite.  Exponents are formed
    in float64 as ``(b - d) * s`` with b = t / s.
    """
    scale = float(np.float32(input_scale) * np.float32(beta))
    maximum = np.finfo(np.float32).max / np.float32(extent)
    shift = max(0.0, float(np.float32(math.log(maximum)) - _RESERVE)) / scale
    # The math library's exponential: entries must not depend on NumPy's.
    return np.array([math.exp((shift - distance) * scale) for distance in range(256)]).astype(np.float32)


def ort_factor(output_scale: float) -> np.float32:
    """What an entry is multiplied by: ``floor(float32(1 / s_y))``."""
    return np.floor(np.float32(1) / np.float32(output_scale))


def ort_largest(entries: NDArray[np.float32], factor: np.float32) -> np.float32 | None:
    """The largest entry whose product with `factor` is finite, None where all are, 0 where none is."""
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(entries * factor)
    return None if is_finite.all() else np.max(entries[is_finite], initial=np.float32(0))


def ort_beyond(output_zero_point: int, lo: int, hi: int) -> int:
    """What a product beyond float32 gives: as an integer it is -2^31, to which the zero point is added.

    That is in 8 bits for ui8, and in 32 bits that wrap around and saturate for i8.
    """
    if lo == 0:
        return output_zero_point
    return hi if output_zero_point < 0 else lo
