"""Functions of one quantized tensor that no op stands for: tables of what ONNX Runtime computes in float32.

Transcendental steps are rounded from float64, where ONNX Runtime's own are an ulp or two off; a code differs where such
an ulp takes a quotient over a tie.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.operators.unary import table_of
from qdialect.frontends.onnx.tensors import Tensor
from qdialect.quant_math import ElementFunction, FloatArray, activations

_Maker = Callable[[Call], ElementFunction]


def _reciprocal(x: FloatArray) -> FloatArray:
    return 1 / x


def _softplus(x: FloatArray) -> FloatArray:
    return np.where(x > 0, x + activations.log(activations.exp(-x) + 1), activations.log(activations.exp(x) + 1))


def _softsign(x: FloatArray) -> FloatArray:
    return x / (1 + np.abs(x))


def _mish(x: FloatArray) -> FloatArray:
    return x * activations.tanh(_softplus(x))


_PLAIN: dict[str, ElementFunction] = {
    "Abs": np.abs,
    "Ceil": np.ceil,
    "Erf": activations.erf,
    "Exp": activations.exp,
    "Floor": np.floor,
    "Log": activations.log,
    "Mish": _mish,
    "Neg": np.negative,
    "Reciprocal": _reciprocal,
    "Round": np.rint,
    "Sign": np.sign,
    "Softplus": _softplus,
    "Softsign": _softsign,
    "Sqrt": activations.sqrt,
}


def _elu(call: Call) -> ElementFunction:
    alpha = np.float32(call.attribute("alpha", 1.0))
    return lambda x: np.where(x >= 0, x, alpha * (activations.exp(np.minimum(x, 0)) - 1))


def _selu(call: Call) -> ElementFunction:
    alpha = np.float32(call.attribute("alpha", float(np.float32(1.67326319217681884765625))))
    gamma = np.float32(call.attribute("gamma", float(np.float32(1.05070102214813232421875))))
    return lambda x: gamma * np.where(x > 0, x, alpha * (activations.exp(np.minimum(x, 0)) - 1))


def _celu(call: Call) -> ElementFunction:
    alpha = np.float32(call.attribute("alpha", 1.0))
    require(alpha != 0, "attribute 'alpha' must not be 0")
    return lambda x: np.maximum(x, 0) + np.minimum(0, alpha * (activations.exp(x / alpha) - 1))


def _thresholded(call: Call) -> ElementFunction:
    alpha = np.float32(call.attribute("alpha", 1.0))
    return lambda x: np.where(x > alpha, x, np.float32(0))


def _swish(call: Call) -> ElementFunction:
    alpha = np.float32(call.attribute("alpha", 1.0))
    return lambda x: x * activations.sigmoid(alpha * x)


def _quick_gelu(call: Call) -> ElementFunction:
    alpha = np.float32(call.attribute("alpha", float(np.float32(1.702))))
    return lambda x: x * activations.sigmoid(alpha * x)


def _gelu(call: Call) -> ElementFunction:
    how = call.attribute("approximate", "none")
    functions = {"none": activations.gelu, "tanh": activations.gelu_tanh}
    require(how in functions, f"attribute 'approximate' must be none or tanh, but got {how}")
    return functions[how]


_MAKERS: dict[str, _Maker] = {
    "Elu": _elu,
    "Selu": _selu,
    "Celu": _celu,
    "ThresholdedRelu": _thresholded,
    "Swish": _swish,
    "Gelu": _gelu,
    "com.microsoft.Gelu": lambda _: activations.gelu,
    "com.microsoft.FastGelu": lambda _: activations.gelu_tanh,
    "com.microsoft.QuickGelu": _quick_gelu,
}


@imports(*_PLAIN)
def _plain(call: Call) -> Tensor:
    call.count(1)
    return table_of(call, 0).then(_PLAIN[call.node.kind])


@imports(*_MAKERS)
def _made(call: Call) -> Tensor:
    call.count(1)
    return table_of(call, 0).then(_MAKERS[call.node.kind](call))
