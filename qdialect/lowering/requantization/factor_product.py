"""A product of two quantized values, one of which meets many of the other, as one fused multiply-add.

With the offsets a' and b' of two stored values from their zero points, a multiplier m and a constant c in (0, 1),

  g(a', b') = z + trunc(fma(a', f, +-c)),      f = b' m rounded to float32,      the sign of c that of a' b'.

f is computed once for each b, and each a then takes a conversion and a multiply-add.  g is odd in a' and in b', but for
z, so that magnitudes tell everything.  Let y be |a'| f as an exact number, and v the magnitude that the op's arithmetic
gives the pair.  The sum reaches a whole number n if and only if y + c reaches e(n), half a unit of the last place below
n (`multiply_add_rounding`), so that g has the op's value if and only if

  c >= e(v) - y      and      c < e(v + 1) - y,

the first only for v > 0, and the second only where v is no bound of the clamp.  Each of the 65 536 pairs is looked at,
and c is the middle of what they leave; some multipliers around the given one are tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.requantization.multiply_add_rounding import (
    LARGEST_REST,
    SLACK,
    SMALLEST_REST,
    least_reaching,
)
from qdialect.quant_math import IntArray

_LARGEST_MULTIPLIER = 2.0**16
_SMALLEST_MULTIPLIER = 2.0**-40
_STEPS = (0, 1, -1, 2, -2, 3, -3, 4, -4)


@dataclass(frozen=True)
class FactorProduct:
    """m and c."""

    multiplier: np.float32
    rest: np.float32


def factor_product(
    quantized: IntArray, lhs: IntArray, rhs: IntArray, zero_point: int, bounds: tuple[int, int], near: float
) -> FactorProduct | None:
    """The numbers that give ``quantized[i, j]``, clamped to `bounds`, for the offsets ``lhs[i]`` and ``rhs[j]``.

    `near` is the multiplier of their product; None where no number near to it will do.
    """
    if not _SMALLEST_MULTIPLIER <= near <= _LARGEST_MULTIPLIER or not bounds[0] <= zero_point <= bounds[1]:
        return None
    signs = np.sign(lhs)[:, None] * np.sign(rhs)
    value = (quantized - zero_point) * signs
    is_bound = quantized == np.where(signs > 0, bounds[1], bounds[0])
    if (value < 0).any() or (value[signs == 0] > 0).any() or (quantized[signs == 0] != zero_point).any():
        return None
    magnitudes = np.abs(lhs)[:, None].astype(np.float64), np.abs(rhs).astype(np.float32)
    least = np.where((value > 0) & (signs != 0), least_reaching(value), -np.inf)
    most = np.where(is_bound & (signs != 0), np.inf, least_reaching(value + 1))
    for step in _STEPS:
        multiplier = (np.float32(near).view(np.int32) + np.int32(step)).view(np.float32)
        found = _rest(*magnitudes, multiplier, least, most)
        if found is not None:
            return FactorProduct(multiplier, found)
    return None


def _rest(
    lhs: NDArray[np.float64],
    rhs: NDArray[np.float32],
    multiplier: np.float32,
    least: NDArray[np.float64],
    most: NDArray[np.float64],
) -> np.float32 | None:
    """c for a multiplier; products of 8 bits and 24 bits are exact in float64."""
    exact = lhs * (rhs * multiplier).astype(np.float64)
    low, high = max((least - exact).max() + SLACK, SMALLEST_REST), min((most - exact).min() - SLACK, LARGEST_REST)
    rest = np.float32((low + high) / 2)
    return rest if low <= rest < high else None
