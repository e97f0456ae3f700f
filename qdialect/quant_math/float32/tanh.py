"""The hyperbolic tangent in float32."""

from __future__ import annotations

from qdialect.quant_math.float32.machine import Machine, V, at_most, polynomial
from qdialect.quant_math.float32.pieces import tables

# (tanh(t) / t - 1) / t^2 by t^2; the largest error is 2^-29.9 of tanh(c + t).
NEAR = (0.0179524533, -0.053495083, 0.133313119, -0.333333075)
# (c, tanh(c), 1 - tanh(c)^2) for quarters of octaves of 0.625 + x below 10.
ROWS = (
    (0, 0, 1),
    (0, 0, 1),
    (0.300000578, 0.291313142, 0.915136635),
    (0.46875146, 0.437189966, 0.808864951),
    (0.72916919, 0.622556806, 0.612423003),
    (0.984378576, 0.754955113, 0.430042773),
    (1.23750281, 0.844741881, 0.286411166),
    (1.58654606, 0.91961807, 0.154302612),
    (2.09559965, 0.970194638, 0.0587223656),
    (2.60118842, 0.989053309, 0.0217735525),
    (3.10501218, 0.99598968, 0.00800455641),
    (3.81048012, 0.999020338, 0.00195836416),
    (4.82375717, 0.999870837, 0.000258310261),
    (5.83285522, 0.999982834, 3.43319807e-05),
    (6.83255816, 0.999997675, 4.64915865e-06),
    (8.31776619, 0.999999881, 2.38418536e-07),
)
OFFSET, SHIFT = 0.625, 21
_ONE = 9.25
"""From here on tanh rounds to 1."""
_TABLES = tables(ROWS, OFFSET, SHIFT)


def tanh(m: Machine[V], x: V) -> V:
    """``tanh(c) + (1 - tanh(c)^2) tanh(t) / (1 + tanh(c) tanh(t))`` for |x| = c + t, with the sign of x.

    The sum has nearly all of the error: its second part is less than a quarter of the number, or all of it.
    """
    size = at_most(m, m.absolute(x), _ONE)
    center, anchor, rest = m.entries(m.add(size, m.constant(OFFSET)), SHIFT, _TABLES)
    t = m.subtract(size, center)
    square = m.multiply(t, t)
    near = m.multiply_add(m.multiply(square, polynomial(m, square, NEAR)), t, t)
    moved = m.divide(m.multiply(rest, near), m.multiply_add(anchor, near, m.constant(1.0)))
    return m.with_sign(m.add(anchor, moved), x)
