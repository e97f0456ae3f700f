"""A sum of two quantized values as two products, a constant and a shift, proved on every pair of quantized values.

A quantized sum is a step function of two quantized values a and b, in whatever arithmetic.  It is replaced by

  clamp(floor((a * A + b * B + C) / 2^s))

where that is the same number for each of the 65 536 pairs that there are.  For given A and B each pair bounds C from
below (its result is reached) and from above (the next one is not), unless its result is a bound of the clamp, beyond
which nothing shows.  All these bounds leave a window for C or none, an exact test of integers; A and B are the ratios
of the scales times 2^s, or integers close to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from qdialect.quant_math import IntArray

_WORD = 31
_NEARBY = 2


@dataclass(frozen=True)
class FixedPointSum:
    """``(a * lhs + b * rhs + rest) >> shift`` in 32 bits, before the clamp."""

    lhs: int
    rhs: int
    rest: int
    shift: int


def fixed_point_sum(
    quantized: IntArray, lhs: IntArray, rhs: IntArray, ratios: tuple[float, float], bounds: tuple[int, int]
) -> FixedPointSum | None:
    """The sum that gives ``quantized[i, j]``, clamped to `bounds`, for ``lhs[i]`` and ``rhs[j]``; None where none does.

    `ratios` are the quantized values' scales by that of their sum.
    """
    spans = [ratio * float(np.ptp(own)) for ratio, own in zip(ratios, (lhs, rhs), strict=True)]
    magnitude = sum(spans) + sum(abs(bound) for bound in bounds) + 2
    if magnitude >= 2.0**_WORD:
        return None
    # An estimate that is never too high; one bit more is better where the numbers fit.
    shift = min(_WORD - int(np.ceil(np.log2(magnitude))), _WORD - 2)
    for bits in (shift + 1, shift):
        for a, b in _slopes(ratios, bits):
            rest = _through(quantized, lhs * a, rhs * b, bits, bounds)
            if rest is not None:
                return FixedPointSum(a, b, rest, bits)
    return None


def _slopes(ratios: tuple[float, float], shift: int) -> Iterator[tuple[int, int]]:
    """Pairs of integers around the ratios times 2^shift, the closest first."""
    a, b = (round(ratio * 2.0**shift) for ratio in ratios)
    steps = sorted(product(range(-_NEARBY, _NEARBY + 1), repeat=2), key=lambda pair: abs(pair[0]) + abs(pair[1]))
    return ((a + i, b + j) for i, j in steps)


def _through(quantized: IntArray, left: IntArray, right: IntArray, shift: int, bounds: tuple[int, int]) -> int | None:
    """The constant in the middle of the window; None where it is empty or a number leaves 32 bits."""
    low, high = bounds
    total = left[:, None] + right
    slack = (quantized << shift) - total
    minimum = int(slack[quantized > low].max(initial=-(2**62)))
    maximum = int(slack[quantized < high].min(initial=2**62)) + (1 << shift) - 1
    if minimum > maximum:
        return None
    rest = min(max((minimum + maximum) // 2, -(2**_WORD)), 2**_WORD - 1)
    partial = [int(edge) for terms in (right, total) for edge in (terms.min() + rest, terms.max() + rest)]
    numbers = [rest, *partial, int(left.min()), int(left.max()), int(right.min()), int(right.max())]
    fits = minimum <= rest <= maximum and all(-(2**_WORD) <= number < 2**_WORD for number in numbers)
    return rest if fits else None
