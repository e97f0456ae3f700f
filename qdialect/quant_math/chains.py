"""Activations of f32 values as trees of float32 operations: what they compute, what they look like, how to write them.

One tree serves the reference, which evaluates it, front ends, which build it from `arith` and `math` ops, the fusion
pass, which looks for it, and the compiler, which emits it into a kernel.  So all four round after the same operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math import activations

FloatArray = NDArray[np.float32]


class Activation(StrEnum):
    """A function of an f32 value.  Clamps are not among them: they commute with rounding and limit quantized values."""

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
        return self in (Activation.LEAKY_RELU, Activation.ELU)


class Leaf(Enum):
    """What a tree starts from."""

    INPUT = auto()
    ALPHA = auto()


@dataclass(frozen=True)
class Step:
    """One float op on its operands; ``arith.cmpf`` is "greater than"."""

    op: str
    operands: tuple[Expression, ...]


Expression = Step | Leaf | float


def _add(a: Expression, b: Expression) -> Step:
    return Step("arith.addf", (a, b))


def _multiply(a: Expression, b: Expression) -> Step:
    return Step("arith.mulf", (a, b))


def _divide(a: Expression, b: Expression) -> Step:
    return Step("arith.divf", (a, b))


def _where_positive(then: Expression, other: Expression) -> Step:
    return Step("arith.select", (Step("arith.cmpf", (_X, 0.0)), then, other))


_X = Leaf.INPUT
_RAMP = Step("arith.minimumf", (Step("arith.maximumf", (_add(_X, 3.0), 0.0)), 6.0))
_SIGMOID = _divide(1.0, _add(1.0, Step("math.exp", (Step("arith.negf", (_X,)),))))
_CUBE = _multiply(_multiply(_X, _X), _X)
_INNER = _multiply(math.sqrt(2 / math.pi), _add(_X, _multiply(0.044715, _CUBE)))

CHAINS: Mapping[Activation, Expression] = {
    Activation.LEAKY_RELU: _where_positive(_X, _multiply(_X, Leaf.ALPHA)),
    Activation.ELU: _where_positive(_X, _multiply(Step("math.expm1", (_X,)), Leaf.ALPHA)),
    Activation.HARDSWISH: _divide(_multiply(_X, _RAMP), 6.0),
    Activation.HARDSIGMOID: _divide(_RAMP, 6.0),
    Activation.SIGMOID: _SIGMOID,
    Activation.SILU: _multiply(_X, _SIGMOID),
    Activation.TANH: Step("math.tanh", (_X,)),
    Activation.GELU: _multiply(_multiply(_X, 0.5), _add(1.0, Step("math.erf", (_multiply(_X, math.sqrt(0.5)),)))),
    Activation.GELU_TANH: _multiply(_multiply(_X, 0.5), _add(1.0, Step("math.tanh", (_INNER,)))),
}
"""The float32 operations of every activation, in the order of PyTorch's and oneDNN's reference kernels.

Operands of a sum or product may stand either way round; constants are rounded to float32.
"""

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "arith.addf": np.add,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.negf": np.negative,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.cmpf": np.greater,
    "arith.select": np.where,
    "math.exp": activations.exp,
    "math.expm1": activations.expm1,
    "math.erf": activations.erf,
    "math.tanh": activations.tanh,
}


def activate(activation: Activation, alpha: float, x: FloatArray) -> FloatArray:
    """`activation` of float32 numbers, every operation rounded to float32; `alpha` is the function's parameter."""
    with np.errstate(all="ignore"):
        return _evaluate(CHAINS[activation], x, np.float32(alpha))


def _evaluate(expression: Expression, x: FloatArray, alpha: np.float32) -> Any:
    if isinstance(expression, Step):
        operands = [_evaluate(operand, x, alpha) for operand in expression.operands]
        return _FUNCTIONS[expression.op](*operands)
    if isinstance(expression, Leaf):
        return x if expression is Leaf.INPUT else alpha
    return np.float32(expression)
