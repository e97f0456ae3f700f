"""A sum of two quantized values as two fused multiply-adds, proved on every pair of quantized values.

The stored sum of stored values a and b is replaced by

  clamp(half_even(fma(a, A, fma(b, B, C)))),

which is how ``float_once`` defines it where quantized values are stored as they are, if that is the same number for
each of the 65 536 pairs that there are.  A and B are the ratios of the scales, and C is what the zero points leave; or
else the middle of the window that all pairs leave for it.

The numbers lie where float64 computes the multiply-adds exactly before they are rounded, and far from subnormal ones,
which a thread may flush to zero: with A and B of 2^-10 to 2^10, and C either 0 or of 2^-10 to 2^19, no bit of a sum is
below 2^-33, and all are below 2^20.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math import IntArray
from qdialect.quant_math.float_sum import FloatSum, float_sum

_SMALLEST, _LARGEST_RATIO, _LARGEST_REST = 2.0**-10, 2.0**10, 2.0**19


def multiply_add_sum(
    quantized: IntArray, lhs: IntArray, rhs: IntArray, numbers: FloatSum, bounds: tuple[int, int]
) -> FloatSum | None:
    """A, B and C that give ``quantized[i, j]``, clamped to `bounds`, for ``lhs[i]`` and ``rhs[j]``; None for none.

    `numbers` are the first that are tried.
    """
    first, second, rest = numbers
    if not all(_SMALLEST <= ratio <= _LARGEST_RATIO for ratio in (first, second)):
        return None
    for number in _rests(quantized, lhs[:, None] * np.float64(first) + rhs * np.float64(second), rest, bounds):
        if number and not _SMALLEST <= abs(number) <= _LARGEST_REST:
            continue
        found = first, second, number
        if np.array_equal(np.clip(float_sum(lhs[:, None], rhs[None, :], found), *bounds), quantized):
            return found
    return None


def _rests(
    quantized: IntArray, products: NDArray[np.float64], rest: np.float32, bounds: tuple[int, int]
) -> Iterator[np.float32]:
    """What to try; the middle is computed where `rest` was not found to be right."""
    yield rest
    yield _middle(quantized, products, bounds)


def _middle(quantized: IntArray, products: NDArray[np.float64], bounds: tuple[int, int]) -> np.float32:
    """The middle of what may be added to `products`, were they not rounded."""
    low, high = bounds
    slack = quantized - products
    minimum = slack[quantized > low].max(initial=-_LARGEST_REST) - 0.5
    maximum = slack[quantized < high].min(initial=_LARGEST_REST) + 0.5
    return np.float32((minimum + maximum) / 2)
