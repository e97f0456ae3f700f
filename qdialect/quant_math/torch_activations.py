"""Functions of PyTorch's operators as trees of float operations, in the order of its float32 kernels.

Those that a stage of an epilogue computes are in `activations`.
"""

from __future__ import annotations

import math

from qdialect.quant_math.expressions import Expression, Input, Number

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
"""What x has beside its whole part, with its sign."""
erfc = Number(1.0) - _X.apply("math.erf")
"""1 - erf(x)."""
sign = abs(_X).apply("math.ceil").at_most(1.0).apply("math.copysign", _X)
"""-1, 0 or 1."""
log_sigmoid = _X.at_most(0.0) - (-abs(_X)).apply("math.exp").apply("math.log1p")
"""min(x, 0) - log(1 + e^-|x|)."""

_GROWN = (_X.apply("math.expm1"), abs(_X).apply("math.expm1"))
tan = _X.apply("math.sin") / _X.apply("math.cos")
"""sin(x) / cos(x)."""
sinh = ((_GROWN[1] + _GROWN[1] / (_GROWN[1] + 1.0)) * 0.5).apply("math.copysign", _X)
"""(e^x - e^-x) / 2, by way of t = e^|x| - 1: (t + t / (t + 1)) / 2."""
cosh = abs(_X).apply("math.exp") * 0.5 + Number(0.5) / abs(_X).apply("math.exp")
"""(e^x + e^-x) / 2."""
asinh = (
    (abs(_X) + _X * _X / (Number(1.0) + (_X * _X + 1.0).apply("math.sqrt")))
    .apply("math.log1p")
    .apply("math.copysign", _X)
)
"""log(x + sqrt(x^2 + 1)), by way of log(1 + |x| + x^2 / (1 + sqrt(x^2 + 1)))."""
acosh = ((_X - 1.0) + ((_X - 1.0) * (_X + 1.0)).apply("math.sqrt")).apply("math.log1p")
"""log(x + sqrt(x^2 - 1)), by way of t = x - 1: log(1 + t + sqrt(t (t + 2)))."""
atanh = (_X * 2.0 / (Number(1.0) - _X)).apply("math.log1p") * 0.5
"""log((1 + x) / (1 - x)) / 2."""

_Y = Input(1)
hypot = (_X * _X + _Y * _Y).apply("math.sqrt")
"""sqrt(x^2 + y^2)."""


def _halves(x: Expression) -> tuple[Expression, Expression]:
    """Two numbers of 12 bits each, whose sum is x (Dekker)."""
    high = x * 4097.0 - (x * 4097.0 - x)
    return high, x - high


def _rest(x: Expression, y: Expression, quotient: Expression) -> Expression:
    """x - quotient * y, exact where the quotient is near x / y: the product as itself and what it has lost (Dekker)."""
    product = quotient * y
    (a, b), (c, d) = _halves(quotient), _halves(y)
    lost = ((a * c - product) + a * d + b * c) + b * d
    return (x - product) - lost


def _remainder_of_sizes() -> Expression:
    size, other = abs(_X), abs(_Y)
    rest = _rest(size, other, (size / other).apply("math.floor"))
    raised = (-rest).where_positive(rest + other, rest)
    return (other - raised).where_positive(raised, raised - other)


fmod = _remainder_of_sizes().apply("math.copysign", _X)
"""x - trunc(x / y) * y, exact for quotients below 2^24."""
_IS_OTHER = -(fmod * Number(1.0).apply("math.copysign", _Y))
remainder = _IS_OTHER.where_positive(fmod + _Y, fmod)
"""x - floor(x / y) * y, as exact as fmod."""
floor_divide = ((_X - remainder) / _Y).apply("math.roundeven")
"""floor(x / y), where x is not rounded up to a multiple of y."""
trunc_divide = (_X / _Y).apply("math.trunc")
"""trunc(x / y)."""


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
    return (abs(_X) - bound).where_positive(_X, _X * 0.0)


def softshrink(bound: float) -> Expression:
    """x - bound where x > bound, x + bound where x < -bound, 0 elsewhere."""
    return (_X - bound).where_positive(_X - bound, (Number(-bound) - _X).where_positive(_X + bound, _X * 0.0))


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
    return _X.apply("math.exp2") if base == 2 else (_X * math.log(base)).apply("math.exp")
