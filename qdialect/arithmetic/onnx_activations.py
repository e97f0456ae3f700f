"""Functions of ONNX operators as trees of float operations, in the order of ONNX Runtime's float32 kernels.

Those that round as PyTorch's do are in `activations`.
"""

from __future__ import annotations

import math

from qdialect.arithmetic import activations
from qdialect.arithmetic.activations import sigmoid, tanh
from qdialect.arithmetic.expressions import Expression, Input, Number

_X = Input()


def hard_sigmoid(alpha: float, beta: float) -> Expression:
    """max(0, min(1, alpha * x + beta))."""
    return (_X * alpha + beta).at_most(1.0).at_least(0.0)


hard_swish = _X * hard_sigmoid(1 / 6, 0.5)
"""x * max(0, min(1, x / 6 + 1/2))."""


def leaky_relu(alpha: float) -> Expression:
    """x, or x * alpha where x is negative: zeros keep their sign, as XNNPACK has it too."""
    keeps_zeros = 0 <= alpha < math.inf
    return activations.leaky_relu(alpha) if keeps_zeros else (-_X).where_positive(_X * alpha, _X)


def elu(alpha: float) -> Expression:
    """x, or (e^x - 1) * alpha where x is negative."""
    return (-_X).where_positive((_X.apply("math.exp") - 1.0) * alpha, _X)


def selu(alpha: float, gamma: float) -> Expression:
    """x * gamma, or (e^x - 1) * alpha * gamma where x is not positive: a zero becomes +0."""
    return _X.where_positive(_X, (_X.apply("math.exp") - 1.0) * alpha) * gamma


def celu(alpha: float) -> Expression:
    """x, or alpha * (e^(x / alpha) - 1) where x is not positive: a zero becomes +0."""
    return _X.where_positive(_X, ((_X / alpha).apply("math.exp") - 1.0) * alpha)


softplus = _X.at_least(0.0) + (-abs(_X)).apply("math.exp").apply("math.log1p")
"""log(1 + e^x), as max(x, 0) + log(1 + e^-|x|)."""
softsign = _X / (abs(_X) + 1.0)
"""x / (1 + |x|)."""


sign = abs(_X).apply("math.ceil").at_most(1.0).apply("math.copysign", _X) + 0.0
"""-1, 0 or 1."""


def thresholded(alpha: float) -> Expression:
    """x, or 0 where x is at most alpha."""
    return (_X - alpha).where_positive(_X, Number(0.0))


def shrink(bound: float, bias: float) -> Expression:
    """x + bias where x < -bound, else x - bias where x > bound, else 0."""
    above = (_X - bound).where_positive(_X - bias, Number(0.0))
    return (-_X - bound).where_positive(_X + bias, above)


def swish(alpha: float) -> Expression:
    """x * sigmoid(alpha * x)."""
    return _X * sigmoid.of(_X * alpha)


mish = _X * tanh.of(softplus)
"""x * tanh(softplus(x))."""
