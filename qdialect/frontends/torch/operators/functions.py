"""Activations, sums, differences, products and quotients, computed in float32."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect._mlir import ir
from qdialect.frontends.common import UnsupportedError, require
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.torch.operators.elementwise import FloatOps, clamped, pointwise
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.passes.float_chains import build_activation
from qdialect.quant_math.chains import Activation

Operands = Sequence[ir.Value]

_ACTIVATIONS = {
    "sigmoid": Activation.SIGMOID,
    "silu": Activation.SILU,
    "tanh": Activation.TANH,
    "hardsigmoid": Activation.HARDSIGMOID,
    "hardswish": Activation.HARDSWISH,
}
_UPSTREAM = {"neg": "neg", "exp": "math.exp", "abs": "math.absf", "sqrt": "math.sqrt", "rsqrt": "math.rsqrt"}


def _activation(call: Call, activation: Activation, alpha: float = 0.0) -> Result:
    return pointwise(call, ("self",), lambda _, operands: build_activation(activation, operands[0], alpha))


@imports(*(f"{name}.default" for name in _ACTIVATIONS))
def _plain_activation(call: Call) -> Result:
    return _activation(call, _ACTIVATIONS[call.node.kind.split(".")[1]])


@imports(*(f"{name}.default" for name in _UPSTREAM))
def _upstream(call: Call) -> Result:
    name = _UPSTREAM[call.node.kind.split(".")[1]]
    return pointwise(call, ("self",), lambda ops, operands: ops(name, operands[0]))


@imports("gelu.default")
def _gelu(call: Call) -> Result:
    how = call.argument("approximate")
    require(how in ("none", "tanh"), f"approximate must be none or tanh, but got {how}")
    return _activation(call, Activation.GELU if how == "none" else Activation.GELU_TANH)


@imports("leaky_relu.default")
def _leaky_relu(call: Call) -> Result:
    return _activation(call, Activation.LEAKY_RELU, _number(call, "negative_slope"))


@imports("elu.default")
def _elu(call: Call) -> Result:
    for name in ("scale", "input_scale"):
        factor = _number(call, name)
        require(factor == 1, f"{name} must be 1, but got {factor}")
    return _activation(call, Activation.ELU, _number(call, "alpha"))


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


_BINARY = ("add", "sub", "mul", "div")


@imports(*(f"{name}.{overload}" for name in _BINARY for overload in ("Tensor", "Scalar")))
def _binary(call: Call) -> Result:
    """``self + alpha * other``, the product or the quotient."""
    name = call.node.kind.split(".")[1]
    alpha = _number(call, "alpha", 1)

    def formula(ops: FloatOps, operands: Operands) -> ir.Value:
        left, right = operands
        if alpha != 1:
            right = ops("mul", right, ops.number(alpha, right))
        return ops(name, left, right)

    return pointwise(call, ("self", "other"), formula)


@imports("rsub.Scalar", "rsub.Tensor")
def _reverse_difference(call: Call) -> Result:
    """``other - alpha * self``."""
    alpha = _number(call, "alpha", 1)

    def formula(ops: FloatOps, operands: Operands) -> ir.Value:
        right, left = operands
        scaled = right if alpha == 1 else ops("mul", right, ops.number(alpha, right))
        return ops("sub", left, scaled)

    return pointwise(call, ("self", "other"), formula)
