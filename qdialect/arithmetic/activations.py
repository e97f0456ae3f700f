"""Builds functions of one float value as trees of float operations, in the order in which frameworks compute them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.expressions import Alpha, Expression, Input, Number, has_parameter

# Tables, the reference, float stages of an epilogue and the float ops that front ends build are all derived from these
# trees.  Where frameworks differ in the order of operations, each order is a tree of its own.  Transcendental functions
# of tables are those of `transcendental`, rounded from float64 once, and those of kernels the sequences of float32
# operations of `float32`; no result of either depends on the machine.

_X = Input()
_RAMP = (_X + 3.0).at_least(0.0).at_most(6.0)
_CUBIC = 0.044715
_ROOT_OF_TWO_OVER_PI = math.sqrt(2 / math.pi)

absolute = abs(_X)
"""|x|."""
ceil = _X.apply("math.ceil")
"""The smallest whole number that is not less than x."""
cos = _X.apply("math.cos")
"""Cosine."""
erf = _X.apply("math.erf")
"""Error function."""
exp = _X.apply("math.exp")
"""e^x; overflows to infinity."""
floor = _X.apply("math.floor")
"""The largest whole number that is not greater than x."""
log = _X.apply("math.log")
"""Natural logarithm; minus infinity at zero, NaN below."""
negate = -_X
"""-x."""
reciprocal = 1.0 / _X
"""1 / x."""
round_even = _X.apply("math.roundeven")
"""The nearest whole number, ties to even."""
rsqrt = _X.apply("math.rsqrt")
"""1 / sqrt(x); infinity at zero, NaN below."""
sin = _X.apply("math.sin")
"""Sine."""
sqrt = _X.apply("math.sqrt")
"""Square root; NaN below zero."""
square = _X * _X
"""x^2."""
tanh = _X.apply("math.tanh")
"""Hyperbolic tangent."""

relu = _X.at_least(0.0)
"""max(x, 0)."""
relu6 = relu.at_most(6.0)
"""min(max(x, 0), 6)."""


def leaky_relu(alpha: Expression | float) -> Expression:
    """x where x > 0, x * alpha elsewhere."""
    return _X.where_positive(_X, _X * alpha)


def elu(alpha: Expression | float) -> Expression:
    """x where x > 0, (e^x - 1) * alpha elsewhere, as PyTorch and oneDNN do: e^x - 1 is one function."""
    return _X.where_positive(_X, _X.apply("math.expm1") * alpha)


hardswish = _X * _RAMP / 6.0
"""x * min(max(x + 3, 0), 6) / 6, as PyTorch, oneDNN and TFLite do."""
hardsigmoid = _RAMP / 6.0
"""min(max(x + 3, 0), 6) / 6, as PyTorch and oneDNN do."""
sigmoid = 1.0 / (1.0 + (-_X).apply("math.exp"))
"""1 / (1 + e^-x)."""
silu = _X * sigmoid
"""x * sigmoid(x), also called swish."""
gelu = _X * 0.5 * (1.0 + (_X * math.sqrt(0.5)).apply("math.erf"))
"""x / 2 * (1 + erf(x / sqrt 2)), the exact form."""
gelu_tanh = _X * 0.5 * (1.0 + (_ROOT_OF_TWO_OVER_PI * (_X + _CUBIC * (_X * _X * _X))).apply("math.tanh"))
"""x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), as PyTorch, oneDNN and ONNX Runtime do: the cube first."""
tflite_gelu_tanh = _X * 0.5 * (1.0 + (_ROOT_OF_TWO_OVER_PI * (_X + _CUBIC * _X * _X * _X)).apply("math.tanh"))
"""The same as TFLite does: 0.044715 is multiplied by x three times."""


def _tflite_gelu() -> Expression:
    """Chebyshev's approximation of erfc, within 1.2e-7 of itself: Numerical Recipes, 6.2."""
    z = abs(_X) * math.sqrt(0.5)
    t = 1.0 / (1.0 + z * 0.5)
    coefficients = (-0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368)
    power: Expression = t * 0.17087277 + coefficients[0]
    for one in (*coefficients[1:], -1.26551223):
        power = power * t + one
    complement = t * (power - z * z).apply("math.exp")
    return (_X + 1.0).where_positive(gelu, _X * 0.5 * complement)


tflite_gelu = _tflite_gelu()
"""x / 2 * erfc(-x / sqrt 2), which unlike `gelu` keeps its digits far below zero."""
_TFLITE_POWER = (-_X - 9.0).where_positive(_X, -_X).apply("math.exp")
tflite_logistic = (-_X - 9.0).where_positive(_TFLITE_POWER, 1.0 / (1.0 + _TFLITE_POWER))
"""1 / (1 + e^-x), or e^x below -9."""


class Activation(StrEnum):
    """A function of the f32 values that a kernel writes, or that a stage of its epilogue computes."""

    NONE = "none"
    """x."""
    RELU = "relu"
    """max(x, 0)."""
    LEAKY_RELU = "leaky_relu"
    """x where x > 0, alpha * x elsewhere."""
    ELU = "elu"
    """x where x > 0, alpha * (e^x - 1) elsewhere."""
    HARDSWISH = "hardswish"
    """x * min(max(x + 3, 0), 6) / 6."""
    HARDSIGMOID = "hardsigmoid"
    """min(max(x + 3, 0), 6) / 6."""
    SIGMOID = "sigmoid"
    """1 / (1 + e^-x)."""
    SILU = "silu"
    """x * sigmoid(x)."""
    TANH = "tanh"
    """Hyperbolic tangent."""
    GELU = "gelu"
    """x / 2 * (1 + erf(x / sqrt 2))."""
    GELU_TANH = "gelu_tanh"
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))."""

    @property
    def has_alpha(self) -> bool:
        """Whether the function has a parameter."""
        return has_parameter(ACTIVATIONS[self])


STAGE_ACTIVATIONS: Mapping[Activation, Expression] = {
    Activation.LEAKY_RELU: leaky_relu(Alpha()),
    Activation.ELU: elu(Alpha()),
    Activation.HARDSWISH: hardswish,
    Activation.HARDSIGMOID: hardsigmoid,
    Activation.SIGMOID: sigmoid,
    Activation.SILU: silu,
    Activation.TANH: tanh,
    Activation.GELU: gelu,
    Activation.GELU_TANH: gelu_tanh,
}
"""The functions that a stage of an epilogue computes, as float32 operations in the order of PyTorch's and oneDNN's
reference kernels.  Relu is not among them: it commutes with rounding and limits quantized values as a clamp.

Operands of a sum or product may stand either way round.
"""
ACTIVATIONS: Mapping[Activation, Expression] = {Activation.NONE: _X, Activation.RELU: relu, **STAGE_ACTIVATIONS}
"""The operations of every function."""


def activate(activation: Activation, alpha: float, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """`activation` of float32 numbers, every operation rounded to float32; `alpha` is the function's parameter."""
    return ACTIVATIONS[activation].in_kernel(x, alpha=alpha).astype(np.float32)


# Inverse trigonometric functions as trees of float operations: a polynomial on a small interval, and identities.
#
# The polynomials and intervals are those of Cephes' single precision functions ``atanf`` and ``asinf``; results are at
# most three units of the last place away from the truth.

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
