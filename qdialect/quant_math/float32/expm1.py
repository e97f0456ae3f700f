"""e^x - 1 in float32."""

from __future__ import annotations

from qdialect.quant_math.float32.exp import exponential, reduced
from qdialect.quant_math.float32.machine import EXPONENT_BIAS, Machine, V, at_least, at_most, polynomial

# (e^r - 1 - r) / r^2 for |r| <= 0.42; the largest error is 2^-26.9 of e^r - 1.
EXPM1 = (
    0.000198476861,
    0.00139647292,
    0.00833345484,
    0.0416660123,
    0.166666657,
    0.5,
)
_LOWEST, _HIGHEST = -18.0, 89.0
"""Beyond them e^x - 1 rounds to -1 and infinity."""
_NEAR = 0.42
"""Below it k is 0: what 2^k - 1 and 2^k g have in common would be lost."""
_ODD, _LARGE = 16.0, 18.4
"""Between them 2^(k-1) - 1/2 has more bits than float32; beyond them 1/2 is less than a quarter of a last bit."""
_LINEAR = 2.0**-25
"""Below it e^x - 1 rounds to x."""


def expm1(m: Machine[V], x: V) -> V:
    """``2 (2^(k-1) g + (2^(k-1) - 1/2))`` with g = e^r - 1 for x = k ln 2 + r; accurate near zero too.

    2^(k-1) is a number of float32 where 2^k is not.  Where x is large, the result is e^x.
    """
    limited = at_most(m, at_least(m, x, _LOWEST), _HIGHEST)
    size = m.absolute(x)
    biased, r = reduced(m, limited, EXPONENT_BIAS - 1, m.where_less(size, m.constant(_NEAR), m.constant(0.0), limited))
    half = m.power_of_two(biased)
    grown = m.multiply_add(polynomial(m, r, EXPM1), m.multiply(r, r), r)
    value = m.multiply_add(half, grown, m.subtract(half, m.constant(0.5)))
    odd = m.add(m.multiply_add(half, grown, m.constant(-0.5)), half)
    value = m.where_less(m.constant(_ODD), x, odd, value)
    value = m.where_less(m.constant(_LARGE), x, m.multiply(exponential(m, r), half), value)
    return m.where_less(size, m.constant(_LINEAR), x, m.add(value, value))


def expm1_below_zero(m: Machine[V], x: V) -> V:
    """`expm1` of x <= 0 and of NaN, with the same bits; of greater numbers it is any number.

    Here |x| < c is -c < x, and neither e^x - 1 of a large x nor the highest bound is needed.
    """
    limited = at_least(m, x, _LOWEST)
    biased, r = reduced(m, limited, EXPONENT_BIAS - 1, m.where_less(m.constant(-_NEAR), x, m.constant(0.0), limited))
    half = m.power_of_two(biased)
    grown = m.multiply_add(polynomial(m, r, EXPM1), m.multiply(r, r), r)
    value = m.multiply_add(half, grown, m.subtract(half, m.constant(0.5)))
    return m.where_less(m.constant(-_LINEAR), x, x, m.add(value, value))
