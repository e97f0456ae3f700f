"""From scales to the multiplier a requantization uses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.choices import Multiplier, Rounding

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


# What a 32-bit sum of two products with 8-bit offsets leaves for the multipliers.
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
