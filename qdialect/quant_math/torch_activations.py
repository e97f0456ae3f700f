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
