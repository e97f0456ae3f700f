"""Activations, sums, differences, products and quotients, computed in float32."""

from __future__ import annotations

import math
from collections.abc import Callable

from qdialect.frontends.common import UnsupportedError, require
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.torch.operators.elementwise import clamped, pointwise
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.quant_math import activations
from qdialect.quant_math.expressions import Expression, Input

_SELF, _OTHER = Input(0), Input(1)
_FUNCTIONS = {
    "abs": activations.absolute,
    "exp": activations.exp,
    "hardsigmoid": activations.hardsigmoid,
    "hardswish": activations.hardswish,
    "neg": activations.negate,
    "rsqrt": activations.rsqrt,
    "sigmoid": activations.sigmoid,
    "silu": activations.silu,
    "sqrt": activations.sqrt,
    "tanh": activations.tanh,
}


@imports(*(f"{name}.default" for name in _FUNCTIONS))
def _function(call: Call) -> Result:
    return _of_self(call, _FUNCTIONS[call.node.kind.split(".")[1]])


def _of_self(call: Call, function: Expression) -> Result:
    return pointwise(call, ("self",), function)


@imports("gelu.default")
def _gelu(call: Call) -> Result:
    how = call.argument("approximate")
    require(how in ("none", "tanh"), f"approximate must be none or tanh, but got {how}")
    return _of_self(call, activations.gelu if how == "none" else activations.gelu_tanh)


@imports("leaky_relu.default")
def _leaky_relu(call: Call) -> Result:
    return _of_self(call, activations.leaky_relu(_number(call, "negative_slope")))


@imports("elu.default")
def _elu(call: Call) -> Result:
    for name in ("scale", "input_scale"):
        factor = _number(call, name)
        require(factor == 1, f"{name} must be 1, but got {factor}")
    return _of_self(call, activations.elu(_number(call, "alpha")))


def _number(call: Call, name: str, default: float | None = None) -> float:
    value = call.argument(name)
    value = default if value is None else value
    if not isinstance(value, int | float) or math.isnan(value):
        raise UnsupportedError(f"argument '{name}' must be a number, but got {value}")
    return float(value)


@imports("relu.default")
def _relu(call: Call) -> Result:
    return clamped(call, 0, math.inf)


@imports("relu6.default")
def _relu6(call: Call) -> Result:
    return clamped(call, 0, 6)


@imports("hardtanh.default")
def _hardtanh(call: Call) -> Result:
    return clamped(call, _number(call, "min_val"), _number(call, "max_val"))


@imports("clamp.default")
def _clamp(call: Call) -> Result:
    return clamped(call, _number(call, "min", -math.inf), _number(call, "max", math.inf))


@imports("clamp_min.default")
def _clamp_min(call: Call) -> Result:
    return clamped(call, _number(call, "min"), math.inf)


@imports("clamp_max.default")
def _clamp_max(call: Call) -> Result:
    return clamped(call, -math.inf, _number(call, "max"))


_BINARY: dict[str, Callable[[Expression, Expression], Expression]] = {
    "add": Expression.__add__,
    "sub": Expression.__sub__,
    "mul": Expression.__mul__,
    "div": Expression.__truediv__,
}


@imports(*(f"{name}.{overload}" for name in _BINARY for overload in ("Tensor", "Scalar")))
def _binary(call: Call) -> Result:
    """``self + alpha * other``, the product or the quotient."""
    function = _BINARY[call.node.kind.split(".")[1]]
    return pointwise(call, ("self", "other"), function(_SELF, _scaled(call, _OTHER)))


@imports("rsub.Scalar", "rsub.Tensor")
def _reverse_difference(call: Call) -> Result:
    """``other - alpha * self``."""
    return pointwise(call, ("self", "other"), _OTHER - _scaled(call, _SELF))


def _scaled(call: Call, operand: Expression) -> Expression:
    alpha = _number(call, "alpha", 1)
    return operand if alpha == 1 else operand * alpha
