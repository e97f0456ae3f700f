"""Functions of one f32 value: tables between quantized values, chains of them too, and upstream ops elsewhere.

Tables hold transcendental functions that are rounded from float64; between float32 tensors they are those of kernels,
at most an ulp from the truth. ONNX Runtime's own are an ulp or two off; a quantized value differs where such an ulp
takes a quotient over a tie.
"""

from __future__ import annotations

import numpy as np

from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.pointwise import Pointwise
from qdialect.frontends.planning.tensors import Tensor
from qdialect.quant_math import activations, inverse_trigonometric, onnx_activations, torch_activations
from qdialect.quant_math.expressions import Expression

_FORMULAS: dict[str, Expression] = {
    "Abs": activations.absolute,
    "Acos": inverse_trigonometric.acos,
    "Acosh": torch_activations.acosh,
    "Asin": inverse_trigonometric.asin,
    "Asinh": torch_activations.asinh,
    "Atan": inverse_trigonometric.atan,
    "Atanh": torch_activations.atanh,
    "Ceil": activations.ceil,
    "Cos": activations.cos,
    "Cosh": torch_activations.cosh,
    "Erf": activations.erf,
    "Exp": activations.exp,
    "Floor": activations.floor,
    "Log": activations.log,
    "Mish": onnx_activations.mish,
    "Neg": activations.negate,
    "Reciprocal": activations.reciprocal,
    "Round": activations.round_even,
    "Sign": onnx_activations.sign,
    "Sin": activations.sin,
    "Sinh": torch_activations.sinh,
    "Softplus": onnx_activations.softplus,
    "Softsign": onnx_activations.softsign,
    "Sqrt": activations.sqrt,
    "Tan": torch_activations.tan,
    "com.microsoft.Gelu": activations.gelu,
}


@imports(*_FORMULAS)
def _pointwise(call: Call) -> Tensor:
    call.count(1)
    return applied(call, _FORMULAS[call.node.kind])


def applied(call: Call, formula: Expression) -> Pointwise:
    """`formula` of input 0."""
    source = call.f32(0)
    return Pointwise(source.shape, (source,), formula)


def _number(call: Call, name: str, default: float) -> float:
    return call.attribute(name, float(np.float32(default)))


@imports("Elu")
def _elu(call: Call) -> Tensor:
    call.count(1)
    return applied(call, onnx_activations.elu(_number(call, "alpha", 1.0)))


@imports("Selu")
def _selu(call: Call) -> Tensor:
    call.count(1)
    alpha, gamma = 1.67326319217681884765625, 1.05070102214813232421875
    return applied(call, onnx_activations.selu(_number(call, "alpha", alpha), _number(call, "gamma", gamma)))


@imports("ThresholdedRelu")
def _thresholded(call: Call) -> Tensor:
    call.count(1)
    return applied(call, onnx_activations.thresholded(_number(call, "alpha", 1.0)))


@imports("Celu")
def _celu(call: Call) -> Tensor:
    call.count(1)
    alpha = _number(call, "alpha", 1.0)
    require(alpha != 0, "attribute 'alpha' must not be 0")
    return applied(call, onnx_activations.celu(alpha))


@imports("HardSigmoid")
def _hard_sigmoid(call: Call) -> Tensor:
    call.count(1)
    return applied(call, onnx_activations.hard_sigmoid(_number(call, "alpha", 0.2), _number(call, "beta", 0.5)))


@imports("Shrink")
def _shrink(call: Call) -> Tensor:
    call.count(1)
    return applied(call, onnx_activations.shrink(_number(call, "lambd", 0.5), _number(call, "bias", 0.0)))


@imports("Swish", "com.microsoft.QuickGelu")
def _swish(call: Call) -> Tensor:
    call.count(1)
    default = 1.0 if call.node.kind == "Swish" else 1.702
    return applied(call, onnx_activations.swish(_number(call, "alpha", default)))


@imports("Gelu")
def _gelu(call: Call) -> Tensor:
    call.count(1)
    kind: str = call.attribute("approximate", "none")
    require(kind in ("none", "tanh"), f"approximate must be none or tanh, but got {kind}")
    return applied(call, activations.gelu if kind == "none" else activations.gelu_tanh)
