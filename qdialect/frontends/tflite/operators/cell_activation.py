"""The functions that recurrent operators may ask for."""

from __future__ import annotations

import tflite

from qdialect.frontends.common import require
from qdialect.quant_math import activations
from qdialect.quant_math.expressions import Expression, Input

_KIND = tflite.ActivationFunctionType
_FUNCTIONS: dict[int, Expression] = {
    _KIND.NONE: Input(),
    _KIND.RELU: activations.relu,
    _KIND.RELU_N1_TO_1: Input().at_least(-1.0).at_most(1.0),
    _KIND.RELU6: activations.relu6,
    _KIND.TANH: activations.tanh,
}


def cell_activation(activation: int) -> Expression:
    """What a fused activation computes; raises `UnsupportedError`."""
    require(activation in _FUNCTIONS, f"fused activation {activation} is not supported")
    return _FUNCTIONS[activation]
