"""The hyperbolic tangent in float32."""

from __future__ import annotations

from qdialect.quant_math.float32.exp import grown, reduced
from qdialect.quant_math.float32.machine import EXPONENT_BIAS, Machine, V, at_most, polynomial

# (tanh(x) / x - 1) / x^2 as a polynomial of x^2 for x <= 1.1; the largest error is 2^-29.1 of tanh(x).
TANH = (
    9.03672917e-05,
    -0.000713453337,
    0.00286656315,
    -0.00841301959,
    0.0216990691,
    -0.0539316572,
    0.133329481,
    -0.333333194,
)
_NEAR = 1.0
_ONE = 10.0
"""From here on tanh rounds to 1."""


def tanh(m: Machine[V], x: V) -> V:
    """``x + x^3 P(x^2)`` below 1, ``1 - 2 / (e^(2 x) + 1)`` above, with the sign of x."""
    size = at_most(m, m.absolute(x), _ONE)
    square = m.multiply(size, size)
    near = m.multiply_add(m.multiply(polynomial(m, square, TANH), square), size, size)
    biased, r = reduced(m, m.add(size, size), EXPONENT_BIAS)
    one = m.constant(1.0)
    power = m.power_of_two(biased)
    divisor = m.multiply_add(power, grown(m, r), m.add(power, one))
    far = m.subtract(one, m.divide(m.constant(2.0), divisor))
    return m.with_sign(m.where_less(size, m.constant(_NEAR), near, far), x)
