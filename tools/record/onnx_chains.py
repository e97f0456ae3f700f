"""Activations as exporters write them, operator by operator, on f32 numbers."""

from __future__ import annotations

import numpy as np
from onnx_graphs import ModelBuilder


def silu(builder: ModelBuilder, x: str) -> str:
    return builder.node("Mul", x, builder.node("Sigmoid", x))


def hard_swish(builder: ModelBuilder, x: str) -> str:
    product = builder.node("Mul", x, _relu6(builder, x))
    return builder.node("Div", product, builder.constant(6.0))


def hard_sigmoid(builder: ModelBuilder, x: str) -> str:
    return builder.node("Div", _relu6(builder, x), builder.constant(6.0))


def _relu6(builder: ModelBuilder, x: str) -> str:
    """Of x + 3."""
    shifted = builder.node("Add", x, builder.constant(3.0))
    return builder.node("Clip", shifted, builder.constant(0.0), builder.constant(6.0))


def hard_sigmoid_product(builder: ModelBuilder, x: str) -> str:
    return builder.node("Mul", x, builder.node("HardSigmoid", x))


def gelu(builder: ModelBuilder, x: str) -> str:
    erf = builder.node("Erf", builder.node("Div", x, builder.constant(float(np.sqrt(2)))))
    product = builder.node("Mul", builder.node("Add", erf, builder.constant(1.0)), x)
    return builder.node("Mul", product, builder.constant(0.5))


def mish(builder: ModelBuilder, x: str) -> str:
    return builder.node("Mul", x, builder.node("Tanh", builder.node("Softplus", x)))


def exp_neg_sqrt_abs(builder: ModelBuilder, x: str) -> str:
    root = builder.node("Sqrt", builder.node("Abs", x))
    return builder.node("Exp", builder.node("Neg", root))
