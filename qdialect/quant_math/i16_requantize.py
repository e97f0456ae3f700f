"""Accumulators of 16-bit activations to 16-bit quantized values with zero point 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.choices import I16Rounding, Multiplier, Rounding
from qdialect.quant_math.fixed_point import INT32_MAX, INT32_MIN, IntArray, multiply_by_quantized_multiplier
from qdialect.quant_math.multipliers import quantize_multiplier, real_multiplier

_LOW_BITS = 16
# The largest Q31 number that does not round to 2^15 without its low bits.
_LARGEST_ROUNDED = 0x7FFF0000
_LARGEST_REDUCED = 0x7FFF


def reduced_multiplier(q: int, e: int) -> tuple[int, int]:
    """(r, n) with q * 2^(e - 31) ~ r * 2^-n and r below 2^15: q without its 16 low bits, rounded; n = 15 - e.

    TFLite MultiplyByQuantizedMultiplier of an int64; r ends at 2^15 - 1.
    """
    rounded = (q + (1 << (_LOW_BITS - 1))) >> _LOW_BITS if q < _LARGEST_ROUNDED else _LARGEST_REDUCED
    return rounded, 15 - e


def reduced_multipliers(multipliers: NDArray[np.float64]) -> tuple[IntArray, IntArray]:
    """r and n of each real multiplier, int64[C]; raises `ValueError` where n is not in [1, 62]."""
    pairs = [reduced_multiplier(*quantize_multiplier(float(m))) for m in multipliers]
    r, n = (np.array(numbers, dtype=np.int64) for numbers in zip(*pairs, strict=True))
    if not ((n >= 1) & (n <= 62)).all():
        raise ValueError(f"multipliers must be below 2^14, but got {multipliers.max()}")
    return r, n


def multiply_by_reduced_multiplier(x: IntArray, r: IntArray, n: IntArray) -> IntArray:
    """``(x * r + 2^(n - 1)) >> n`` with the low 32 bits of the result, as an int32: int64 of the shape of `x`."""
    product = x * r + (np.int64(1) << (n - 1))
    return (product >> n).astype(np.int32).astype(np.int64)


def i16_requantize(
    acc: IntArray,
    input_scale: float,
    weight_scales: Sequence[float],
    output_scale: float,
    lo: int,
    hi: int,
    rounding: I16Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """clamp(round(acc * M)) to [lo, hi], int64 of the shape of `acc`; M has one entry, or one for each last index.

    * `fixed32_double`: see `multiply_by_quantized_multiplier`.
    * `fixed16_up`: see `multiply_by_reduced_multiplier`.
    * `f64_nearest`: half_away(float64(acc) * M), saturated to int32.
    """
    multipliers = real_multiplier(input_scale, weight_scales, output_scale, multiplier)
    if rounding is I16Rounding.F64_NEAREST:
        product = acc.astype(np.float64) * multipliers
        whole = np.trunc(product)
        nearest = whole + np.where(np.abs(product - whole) >= 0.5, np.copysign(1.0, product), 0.0)
        return np.clip(np.clip(nearest, INT32_MIN, INT32_MAX).astype(np.int64), lo, hi)
    if rounding is I16Rounding.FIXED16_UP:
        return np.clip(multiply_by_reduced_multiplier(acc, *reduced_multipliers(multipliers)), lo, hi)
    q, e = np.array([quantize_multiplier(float(m)) for m in multipliers], dtype=np.int64).T
    return np.clip(multiply_by_quantized_multiplier(acc, q, e, Rounding.FIXED32_DOUBLE), lo, hi)
