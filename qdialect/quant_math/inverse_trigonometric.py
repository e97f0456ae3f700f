"""Inverse trigonometric functions as trees of float operations: a polynomial on a small interval, and identities.

The polynomials and intervals are those of Cephes' single precision functions ``atanf`` and ``asinf``; results are at
most three units of the last place away from the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect.quant_math.expressions import Expression, Input, Number

_X = Input()
_TAN_OF_EIGHTH = 0.4142135623730950
"""tan(pi / 8)."""
_ATAN = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
_ASIN = (4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1)


def _odd(x: Expression, squared: Expression, coefficients: Sequence[float]) -> Expression:
    """x + x^3 p(x^2), with the coefficients of p from the highest power on."""
    total: Expression = Number(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * squared + coefficient
    return x * squared * total + x


def _atan() -> Expression:
    """By atan(x) = pi/4 + atan((x - 1) / (x + 1)) above tan(pi/8), and pi/2 - atan(1/x) for x above 1."""
    size = abs(_X)
    near = (size - 1.0).where_positive(Number(1.0) / size, size)
    part = (near - _TAN_OF_EIGHTH).where_positive((near - 1.0) / (near + 1.0), near)
    offset = (near - _TAN_OF_EIGHTH).where_positive(Number(math.pi / 4), Number(0.0))
    angle = offset + _odd(part, part * part, _ATAN)
    return (size - 1.0).where_positive(Number(math.pi / 2) - angle, angle).apply("math.copysign", _X)


def _half_angle() -> tuple[Expression, Expression]:
    """asin of |x| up to 1/2, and of sqrt((1 - |x|) / 2), which is half of acos(|x|)."""
    size = abs(_X)
    other = (Number(1.0) - size) * 0.5
    return _odd(size, size * size, _ASIN), _odd(other.apply("math.sqrt"), other, _ASIN)


_SMALL, _HALF = _half_angle()
_IS_LARGE = abs(_X) - 0.5

atan = _atan()
"""The angle in (-pi/2, pi/2) whose tangent is x."""
asin = _IS_LARGE.where_positive(Number(math.pi / 2) - _HALF * 2.0, _SMALL).apply("math.copysign", _X)
"""The angle in [-pi/2, pi/2] whose sine is x; NaN outside of [-1, 1]."""
acos = _IS_LARGE.where_positive(
    _X.where_positive(_HALF * 2.0, Number(math.pi) - _HALF * 2.0),
    Number(math.pi / 2) - _SMALL.apply("math.copysign", _X),
)
"""The angle in [0, pi] whose cosine is x; NaN outside of [-1, 1]."""
