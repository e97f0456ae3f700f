"""2^x in float32."""

from __future__ import annotations

from qdialect.quant_math.float32.machine import EXPONENT_BIAS, ROUNDER, Machine, V, at_most, polynomial

# (2^r - 1) / r for |r| <= 1/2; the largest error is 2^-26.0 of 2^r.
POWER_OF_TWO = (
    0.000154762965,
    0.00134002685,
    0.00961800385,
    0.055503279,
    0.240226507,
    0.693147182,
)
_LOWEST, _HIGHEST = -151.0, 129.0
"""Beyond them 2^x rounds to 0 and infinity; from the lower one down the exponent k is -151 or less."""


def exp2(m: Machine[V], x: V) -> V:
    """``2^k (1 + r P(r))`` for x = k + r; 0 below, infinity above, NaN stays."""
    x = at_most(m, m.at_least_scaled(x, _LOWEST), _HIGHEST)
    rounder = m.constant(ROUNDER + 2 * EXPONENT_BIAS)
    biased = m.add(x, rounder)
    r = m.subtract(x, m.subtract(biased, rounder))
    value = m.multiply_add(polynomial(m, r, POWER_OF_TWO), r, m.constant(1.0))
    return m.scale(value, biased)
