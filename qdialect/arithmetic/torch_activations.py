"""Functions of PyTorch's operators as trees of float operations, in the order of its float32 kernels.

Those that a stage of an epilogue computes are in `activations`.
"""

from __future__ import annotations

import math

import numpy as np

from qdialect.arithmetic.expressions import Expression, Input, Number

_X = Input()

exp2 = _X.apply("math.exp2")
"""2^x."""
expm1 = _X.apply("math.expm1")
"""e^x - 1."""
log10 = _X.apply("math.log10")
"""Logarithm to base 10."""
log1p = _X.apply("math.log1p")
"""log(1 + x)."""
log2 = _X.apply("math.log2")
"""Logarithm to base 2."""
trunc = _X.apply("math.trunc")
"""The whole part."""
frac = _X - trunc
"""The fraction of x, with its sign."""
erfc = _X.apply("math.erfc")
"""1 - erf(x)."""
sign = _X.where_positive(Number(1.0), (-_X).where_positive(Number(-1.0), Number(0.0)))
"""-1, 0 or 1; 0 of NaN too."""
log_sigmoid = _X.at_most(0.0) - (-abs(_X)).apply("math.exp").apply("math.log1p")
"""min(x, 0) - log(1 + e^-|x|)."""

_GROWN = (_X.apply("math.expm1"), abs(_X).apply("math.expm1"))
tan = _X.apply("math.sin") / _X.apply("math.cos")
"""sin(x) / cos(x)."""
_ROOT = (abs(_X) * 0.5).apply("math.exp")
_IS_STEEP = abs(_X) - 40.0
"""Beyond it e^-|x| is less than a last bit of e^|x|, whose half may be finite where it is not."""
_SINH = (_GROWN[1] + _GROWN[1] / (_GROWN[1] + 1.0)) * 0.5
sinh = _IS_STEEP.where_positive(_ROOT * 0.5 * _ROOT, _SINH).apply("math.copysign", _X)
"""(e^x - e^-x) / 2, by way of t = e^|x| - 1: (t + t / (t + 1)) / 2."""
_COSH = abs(_X).apply("math.exp") * 0.5 + Number(0.5) / abs(_X).apply("math.exp")
cosh = _IS_STEEP.where_positive(_ROOT * 0.5 * _ROOT, _COSH)
"""(e^x + e^-x) / 2."""


def _logarithm(size: Expression, grown: Expression) -> Expression:
    """log(1 + `grown`); of a large `size`, whose square overflows, log(2 `size`)."""
    is_large = size - 2.0**30
    offset = is_large.where_positive(Number(math.log(2)), Number(0.0))
    return is_large.where_positive(size, grown).apply("math.log1p") + offset


asinh = _logarithm(abs(_X), abs(_X) + _X * _X / (Number(1.0) + (_X * _X + 1.0).apply("math.sqrt"))).apply(
    "math.copysign", _X
)
"""log(x + sqrt(x^2 + 1)), by way of log(1 + |x| + x^2 / (1 + sqrt(x^2 + 1)))."""
acosh = _logarithm(_X, (_X - 1.0) + (_X - 1.0).apply("math.sqrt") * (_X + 1.0).apply("math.sqrt"))
"""log(x + sqrt(x^2 - 1)), by way of t = x - 1: log(1 + t + sqrt(t (t + 2)))."""
atanh = ((abs(_X) * 2.0 / (Number(1.0) - abs(_X))).apply("math.log1p") * 0.5).apply("math.copysign", _X)
"""log((1 + x) / (1 - x)) / 2."""

_Y = Input(1)


def _hypot() -> Expression:
    """By the quotient of the sizes: no square overflows or is lost."""
    x, y = abs(_X), abs(_Y)
    size, other = (x - y).where_positive(x, y), (x - y).where_positive(y, x)
    quotient = size.where_positive(other / size, size * 0.0)
    root = size * (quotient * quotient + 1.0).apply("math.sqrt")
    # Infinite if either number is; the larger one hides a NaN.
    largest = float(np.finfo(np.float32).max)
    ended = (x - largest).where_positive(x, y)
    is_ended = (x - largest).where_positive(x, (y - largest).where_positive(y, Number(0.0)))
    return is_ended.where_positive(ended, root + (x * 0.0 + y * 0.0))


hypot = _hypot()
"""sqrt(x^2 + y^2)."""
fmod = _X.apply("arith.remf", _Y)
"""x - trunc(x / y) * y, exact."""
_IS_OTHER = -(fmod * Number(1.0).apply("math.copysign", _Y))
"""Positive where the remainder has another sign than the divisor."""
remainder = _IS_OTHER.where_positive(fmod + _Y, fmod)
"""x - floor(x / y) * y, exact but for one rounding."""


def _floor_divide() -> Expression:
    exact = (_X - fmod) / _Y
    lower = _IS_OTHER.where_positive(exact - 1.0, exact)
    whole = lower.apply("math.floor")
    nearest = (lower - whole - 0.5).where_positive(whole + 1.0, whole)
    # A zero has the sign of the quotient; NaN stays.
    signed = abs(lower).where_positive(nearest, (lower * 0.0).apply("math.copysign", _X / _Y))
    return abs(_Y).where_positive(signed, _X / _Y)


floor_divide = _floor_divide()
"""floor(x / y), where x is not rounded up to a multiple of y."""
trunc_divide = (_X / _Y).apply("math.trunc")
"""trunc(x / y)."""


def _logarithm_of_sum(power: str, factor: float) -> Expression:
    larger, distance = _X.apply("arith.maximumf", _Y), -abs(_X - _Y)
    value = distance.apply(power).apply("math.log1p").apply("math.fma", factor, larger)
    # The distance of equal infinities is none.
    return (abs(larger) - float(np.finfo(np.float32).max)).where_positive(larger, value)


logaddexp = _logarithm_of_sum("math.exp", 1.0)
"""log(e^x + e^y)."""
logaddexp2 = _logarithm_of_sum("math.exp2", 1 / math.log(2))
"""log2(2^x + 2^y)."""


def _between(weight: Expression) -> Expression:
    is_near = Number(0.5) - abs(weight)
    share = is_near.where_positive(weight, weight - 1.0)
    return share.apply("math.fma", _Y - _X, is_near.where_positive(_X, _Y))


lerp = _between(Input(2))
"""x + (y - x) * z, from the nearer end on, with one rounding of product and sum."""


def add_product(value: float) -> Expression:
    """x + y * z * `value`, with one rounding of the last product and the sum."""
    factor = _Y if value == 1 else _Y * value
    return factor.apply("math.fma", Input(2), _X)


floor_of_quotient = (_X / _Y - (_X / _Y).apply("math.floor")).where_positive(
    (_X / _Y).apply("math.floor"), (remainder / _Y - 0.5).where_positive(_X / _Y - 1.0, _X / _Y)
)
"""floor(x / y) as if the quotient were not rounded to float32: one that was raised to a whole number is lowered."""


def elu(alpha: float, scale: float, input_scale: float) -> Expression:
    """x * scale where x > 0, (e^(x * input_scale) - 1) * (alpha * scale) elsewhere; SELU and CELU are of this form."""
    below = (_X * input_scale).apply("math.expm1") * (alpha * scale)
    return _X.where_positive(_X * scale, below)


def softplus(beta: float, threshold: float) -> Expression:
    """x where x * beta > threshold, log(1 + e^(x * beta)) / beta elsewhere."""
    scaled = _X * beta
    smooth = scaled.apply("math.exp").apply("math.log1p") / beta
    return (scaled - threshold).where_positive(_X, smooth)


mish = _X * softplus(1.0, 20.0).apply("math.tanh")
"""x * tanh(softplus(x))."""


def hardshrink(bound: float) -> Expression:
    """x where |x| > bound, 0 elsewhere."""
    return (abs(_X) - bound).where_positive(_X, _X * 0.0 + 0.0)


def softshrink(bound: float) -> Expression:
    """x - bound where x > bound, x + bound where x < -bound, 0 elsewhere."""
    return (_X - bound).where_positive(_X - bound, (Number(-bound) - _X).where_positive(_X + bound, _X * 0.0 + 0.0))


def power(exponent: float) -> Expression:
    """x^exponent; PyTorch multiplies for exponents of 2 and 3, and takes roots for those of a half."""
    known = {
        0.5: _X.apply("math.sqrt"),
        -0.5: _X.apply("math.rsqrt"),
        1.0: _X,
        2.0: _X * _X,
        3.0: _X * _X * _X,
        -1.0: 1.0 / _X,
        -2.0: 1.0 / (_X * _X),
    }
    return known.get(exponent, _X.apply("math.powf", exponent))


def power_of(base: float) -> Expression:
    """base^x."""
    return _X.apply("math.exp2") if base == 2 else Number(base).apply("math.powf", _X)
