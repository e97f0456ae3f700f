"""e^x in float32."""

from __future__ import annotations

import math

from qdialect.quant_math.float32.machine import EXPONENT_BIAS, ROUNDER, Machine, V, at_most, polynomial

# (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2; the largest error is 2^-25.8 of e^r - 1.
EXPONENTIAL = (
    0.00138825225,
    0.00836651307,
    0.0416672006,
    0.166665435,
    0.49999997,
)
# ln 2 in two parts; the first has 15 bits, so that its product with any exponent is exact.
LN2_HIGH = 0.693145751953125
LN2_LOW = 1.428606765330187e-06
_LOWEST, _HIGHEST = -105.0, 89.0
"""Beyond them e^x rounds to 0 and infinity; from the lower one down the exponent k is -151 or less."""


def exp(m: Machine[V], x: V) -> V:
    """``2^k (1 + r (1 + r P(r)))`` for x = k ln 2 + r; 0 below, infinity above, NaN stays.

    The last product is the only one that may be subnormal, so that such numbers are rounded once as well.
    """
    x = at_most(m, m.at_least_scaled(x, _LOWEST), _HIGHEST)
    biased, r = reduced(m, x, 2 * EXPONENT_BIAS)
    return m.scale(exponential(m, r), biased)


def reduced(m: Machine[V], x: V, bias: int, near: V | None = None) -> tuple[V, V]:
    """(k + `bias` + `ROUNDER`, r) with x = k ln 2 + r; k is the whole number nearest to `near` / ln 2, or x / ln 2."""
    rounder = m.constant(ROUNDER + bias)
    biased = m.multiply_add(x if near is None else near, m.constant(1 / math.log(2)), rounder)
    k = m.subtract(biased, rounder)
    r = m.multiply_add(k, m.constant(-LN2_HIGH), x)
    return biased, m.multiply_add(k, m.constant(-LN2_LOW), r)


def exponential(m: Machine[V], r: V) -> V:
    """e^r for |r| <= ln(2) / 2."""
    one = m.constant(1.0)
    return m.multiply_add(m.multiply_add(polynomial(m, r, EXPONENTIAL), r, one), r, one)
