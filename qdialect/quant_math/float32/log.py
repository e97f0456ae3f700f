"""The natural logarithm in float32."""

from __future__ import annotations

import math

from qdialect.quant_math.float32.machine import Machine, V, polynomial

# (log(1 + m) - m + m^2 / 2) / m^3 for m in [-1/4, 1/2]; the largest error is 2^-27.3 of log(1 + m).
LOGARITHM = (
    -0.0461680964,
    0.105828181,
    -0.13186878,
    0.144676924,
    -0.166437432,
    0.199910909,
    -0.250001937,
    0.333334476,
)
MIN_FRACTION = 0.75
"""A number is 2^k (1 + m) with 1 + m in [0.75, 1.5), so that k is 0 for those near 1."""
_SMALLEST = 2.0**-125
_UPWARDS, _STEPS = 2.0**24, 24.0


def log(m: Machine[V], x: V) -> V:
    """``k ln 2 + log(1 + m)`` for x = 2^k (1 + m); minus infinity at zero, NaN below."""
    zero, smallest = m.constant(0.0), m.constant(_SMALLEST)
    # Subnormal numbers are made larger by a power of two.
    normal = m.where_less(x, smallest, m.multiply(x, m.constant(_UPWARDS)), x)
    k, fraction, _ = m.split(normal, MIN_FRACTION)
    k = m.where_less(x, smallest, m.subtract(k, m.constant(_STEPS)), k)
    value = joined(m, k, m.subtract(fraction, m.constant(1.0)))
    ended = m.where_less(x, zero, m.constant(math.nan), m.constant(-math.inf))
    return m.where_less(x, m.constant(math.inf), m.where_less(zero, x, value, ended), x)


def joined(m: Machine[V], k: V, fraction: V) -> V:
    """``k ln 2 + log(1 + fraction)`` for a fraction in [-1/4, 1/2]."""
    square = m.multiply(fraction, fraction)
    value = m.multiply_add(polynomial(m, fraction, LOGARITHM), fraction, m.constant(-0.5))
    value = m.multiply_add(value, square, fraction)
    return m.multiply_add(k, m.constant(math.log(2)), value)
