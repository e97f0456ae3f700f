"""Exact division of float32 numbers by a short constant b: two products, one of them fused.

With z = 1 / b rounded down, and w = 1 / b - z rounded,

    p = a w        a / b = a z + p, fused

(Brisebarre, Muller and Raina, "Accelerating correctly rounded floating-point division when the divisor is known in
advance", 2004).  Let u be the last place of a / b, which is below 2^24 u.  w is at most 2^-23 / b, and w and p are each
rounded by at most a fraction 2^-24: the sum before it is rounded is within 2^-22 u of a / b, or hardly more.  That is
wrong only where a midpoint of two numbers lies in between.  Let a = A 2^i with A < 2^24, and b = B 2^k with an odd B,
which is 3 at least.  In units of u, a / b is A 2^s / B with s >= 0, and a midpoint n + 1/2:

    a / b - (n + 1/2) = (2^(s + 1) A - (2 n + 1) B) / 2B

has an odd numerator, so no midpoint is nearer than u / 2B, which is more than 2^-20 u for B < 2^19.

Signs of zeros, infinities and NaNs are those of the division, as z and w are positive.  What overflows does so behind a
midpoint.  Where p is subnormal, it is rounded by up to 2^-150 more: below 2^-26 u for b <= 2^20 and |a| >= `LEAST`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

LEAST = 2.0**-80
"""Of the magnitude of numbers that are divided so, except zeros."""

_LEAST_DIVISOR, _LARGEST_DIVISOR = 2.0**-20, 2.0**20
_ODD_BITS = 19


@dataclass(frozen=True)
class ShortReciprocal:
    """1 / b as the sum of two float32 numbers, the first one rounded down."""

    high: float
    low: float

    @classmethod
    def of(cls, divisor: float) -> ShortReciprocal | None:
        """The one of `divisor`, a float32 number, or None where that is too long, too far from 1 or a power of two."""
        if not _LEAST_DIVISOR <= divisor <= _LARGEST_DIVISOR or not 1 < _odd_part(divisor) < 2**_ODD_BITS:
            return None
        exact = 1 / Fraction(divisor)
        high = np.float32(float(exact))
        if Fraction(float(high)) > exact:
            high = np.nextafter(high, np.float32(0))
        return cls(float(high), float(np.float32(float(exact - Fraction(float(high))))))


def _odd_part(number: float) -> int:
    """The odd integer that is `number` times a power of two."""
    numerator = Fraction(number).numerator
    return numerator >> ((numerator & -numerator).bit_length() - 1)
