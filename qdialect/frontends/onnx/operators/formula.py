"""Functions of one f32 value: tables between quantized values, chains of them too, and upstream ops elsewhere.

Transcendental functions are rounded from float64, where ONNX Runtime's own are an ulp or two off; a quantized value
differs where such an ulp takes a quotient over a tie.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.operators.term import Built, Evaluated, Term
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, Table, Tensor, quantize
from qdialect.quant_math import FloatArray

Formula = Callable[[Term], Term]

_CUBIC = 0.044715


@dataclass(frozen=True, eq=False)
class Applied(F32Tensor):
    """A formula of the f32 values of `source`, in float32."""

    source: F32Tensor
    formula: Formula

    def _table(self) -> Table | None:
        table = self.source.table()
        return None if table is None else table.then(self._evaluate)

    def _evaluate(self, f32_values: FloatArray) -> FloatArray:
        result = self.formula(Evaluated(f32_values))
        assert isinstance(result, Evaluated)
        return result.array

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        table = self.table() if to.element in EIGHT_BIT else None
        return table.quantized(plan, name, to) if table else quantize(plan, name, self.f32(plan, name), to)

    def _f32(self, plan: Plan, name: str) -> Value:
        source = self.source.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            value, is_channels_last = emitter.either(source)
            result = self.formula(Built(emitter, value))
            assert isinstance(result, Built)
            return result.value, is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


def sigmoid(x: Term) -> Term:
    """1 / (1 + e^-x)."""
    return ((-x).apply("math.exp") + 1.0).reciprocal()


def tanh(x: Term) -> Term:
    """The hyperbolic tangent."""
    return x.apply("math.tanh")


def leaky_relu(alpha: float) -> Formula:
    """x, or alpha * x where x is negative."""
    return lambda x: x.at_least(0.0) + x.at_most(0.0) * alpha


def hard_sigmoid(alpha: float, beta: float) -> Formula:
    """max(0, min(1, alpha * x + beta))."""
    return lambda x: (x * alpha + beta).at_most(1.0).at_least(0.0)


def hard_swish(x: Term) -> Term:
    """x * max(0, min(1, x / 6 + 1/2))."""
    return x * hard_sigmoid(1 / 6, 0.5)(x)


def elu(alpha: float) -> Formula:
    """x, or alpha * (e^x - 1) where x is negative."""
    return lambda x: x.at_least(0.0) + (x.at_most(0.0).apply("math.exp") - 1.0) * alpha


def selu(alpha: float, gamma: float) -> Formula:
    """gamma * elu(x)."""
    return lambda x: elu(alpha)(x) * gamma


def celu(alpha: float) -> Formula:
    """x, or alpha * (e^(x / alpha) - 1) where x is negative."""
    return lambda x: x.at_least(0.0) + ((x.at_most(0.0) / alpha).apply("math.exp") - 1.0) * alpha


def softplus(x: Term) -> Term:
    """log(1 + e^x), as max(x, 0) + log(1 + e^-|x|)."""
    return x.at_least(0.0) + (-abs(x)).apply("math.exp").apply("math.log1p")


def softsign(x: Term) -> Term:
    """x / (1 + |x|)."""
    return x / (abs(x) + 1.0)


def sign(x: Term) -> Term:
    """-1, 0 or 1."""
    return abs(x).apply("math.ceil").at_most(1.0).apply("math.copysign", x)


def thresholded(alpha: float) -> Formula:
    """x, or 0 where x is at most alpha."""
    return lambda x: x * sign(x - alpha).at_least(0.0)


def swish(alpha: float) -> Formula:
    """x * sigmoid(alpha * x)."""
    return lambda x: x * sigmoid(x * alpha)


def mish(x: Term) -> Term:
    """x * tanh(softplus(x))."""
    return x * tanh(softplus(x))


def gelu(x: Term) -> Term:
    """x / 2 * (1 + erf(x / sqrt(2)))."""
    return x * 0.5 * ((x * math.sqrt(0.5)).apply("math.erf") + 1.0)


def fast_gelu(x: Term) -> Term:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))."""
    return x * 0.5 * (tanh((x * x * x * _CUBIC + x) * math.sqrt(2 / math.pi)) + 1.0)


_FORMULAS: dict[str, Formula] = {
    "Abs": abs,
    "Ceil": lambda x: x.apply("math.ceil"),
    "Erf": lambda x: x.apply("math.erf"),
    "Exp": lambda x: x.apply("math.exp"),
    "Floor": lambda x: x.apply("math.floor"),
    "Log": lambda x: x.apply("math.log"),
    "Mish": mish,
    "Neg": lambda x: -x,
    "Reciprocal": lambda x: x.reciprocal(),
    "Round": lambda x: x.apply("math.roundeven"),
    "Sign": sign,
    "Softplus": softplus,
    "Softsign": softsign,
    "Sqrt": lambda x: x.apply("math.sqrt"),
    "com.microsoft.Gelu": gelu,
}


@imports(*_FORMULAS)
def _pointwise(call: Call) -> Tensor:
    call.count(1)
    return applied(call, _FORMULAS[call.node.kind])


def applied(call: Call, formula: Formula) -> Applied:
    """`formula` of input 0."""
    source = call.f32(0)
    return Applied(source.shape, source, formula)


def _number(call: Call, name: str, default: float) -> float:
    return call.attribute(name, float(np.float32(default)))


@imports("Elu")
def _elu(call: Call) -> Tensor:
    call.count(1)
    return applied(call, elu(_number(call, "alpha", 1.0)))


@imports("Selu")
def _selu(call: Call) -> Tensor:
    call.count(1)
    alpha, gamma = 1.67326319217681884765625, 1.05070102214813232421875
    return applied(call, selu(_number(call, "alpha", alpha), _number(call, "gamma", gamma)))


@imports("ThresholdedRelu")
def _thresholded(call: Call) -> Tensor:
    call.count(1)
    return applied(call, thresholded(_number(call, "alpha", 1.0)))


@imports("Celu")
def _celu(call: Call) -> Tensor:
    call.count(1)
    alpha = _number(call, "alpha", 1.0)
    require(alpha != 0, "attribute 'alpha' must not be 0")
    return applied(call, celu(alpha))


@imports("HardSigmoid")
def _hard_sigmoid(call: Call) -> Tensor:
    call.count(1)
    return applied(call, hard_sigmoid(_number(call, "alpha", 0.2), _number(call, "beta", 0.5)))


@imports("Swish", "com.microsoft.QuickGelu")
def _swish(call: Call) -> Tensor:
    call.count(1)
    default = 1.0 if call.node.kind == "Swish" else 1.702
    return applied(call, swish(_number(call, "alpha", default)))


@imports("Gelu")
def _gelu(call: Call) -> Tensor:
    call.count(1)
    kind: str = call.attribute("approximate", "none")
    require(kind in ("none", "tanh"), f"approximate must be none or tanh, but got {kind}")
    return applied(call, gelu if kind == "none" else fast_gelu)
