"""The error function in float32."""

from __future__ import annotations

from qdialect.quant_math.float32.exp import grown, reduced
from qdialect.quant_math.float32.machine import EXPONENT_BIAS, Machine, V, at_most, polynomial

# erf(x) / x - 1 as a polynomial of x^2 for x <= 1; the largest error is 2^-29.4 of erf(x).
ERF = (
    7.80690316e-05,
    -0.00079978531,
    0.0051871622,
    -0.0268533472,
    0.112835787,
    -0.37612626,
    0.128379166,
)
# log(1 - erf(x)) / x + 1 for x in [0.99, 3.95]; the largest error is 2^-31.1 in erf(x).
ERFC_LOGARITHM = (
    -1.38418291e-05,
    0.0003493033,
    -0.00375186373,
    0.0239973105,
    -0.106514901,
    -0.634979963,
    -0.128691554,
)
_NEAR = 1.0
_ONE = 3.95
"""From here on erf rounds to 1."""


def erf(m: Machine[V], x: V) -> V:
    """``x + x P(x^2)`` below 1, ``1 - e^(x Q(x) - x)`` above, with the sign of x."""
    size = at_most(m, m.absolute(x), _ONE)
    square = m.multiply(size, size)
    near = m.multiply_add(polynomial(m, square, ERF), size, size)
    negative = m.subtract(m.constant(0.0), size)
    logarithm = m.multiply_add(polynomial(m, size, ERFC_LOGARITHM), size, negative)
    biased, r = reduced(m, logarithm, EXPONENT_BIAS)
    power = m.power_of_two(biased)
    rest = m.subtract(m.constant(1.0), power)
    far = m.subtract(rest, m.multiply(power, grown(m, r)))
    return m.with_sign(m.where_less(size, m.constant(_NEAR), near, far), x)
