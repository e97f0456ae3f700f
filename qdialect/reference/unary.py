"""The 256-entry table that each unary op of the dialect is."""

from __future__ import annotations

from typing import Any

from qdialect.dialect import (
    AbsOp,
    EluOp,
    ErfOp,
    ExpOp,
    GeluOp,
    HardswishOp,
    LeakyReluOp,
    LogOp,
    Relu6Op,
    ReluOp,
    RsqrtOp,
    SigmoidOp,
    SiluOp,
    SqrtOp,
    TanhOp,
    UnaryOp,
)
from qdialect.dialect.enums import HardswishMode, LeakyMode
from qdialect.dialect.type_constraints import dtype_of
from qdialect.quant_math import (
    ElementFunction,
    Table,
    activations,
    build_table,
    tflite_hard_swish_table,
    tflite_leaky_relu_table,
    tvm_leaky_relu_table,
)

_PLAIN_FUNCTIONS: dict[type[UnaryOp], ElementFunction] = {
    AbsOp: activations.absolute,
    ErfOp: activations.erf,
    ExpOp: activations.exp,
    GeluOp: activations.gelu,
    HardswishOp: activations.hardswish,
    LogOp: activations.log,
    Relu6Op: activations.relu6,
    ReluOp: activations.relu,
    RsqrtOp: activations.rsqrt,
    SigmoidOp: activations.sigmoid,
    SiluOp: activations.silu,
    SqrtOp: activations.sqrt,
    TanhOp: activations.tanh,
}

UNARY_OPS: tuple[type[UnaryOp], ...] = (*_PLAIN_FUNCTIONS, EluOp, LeakyReluOp)
"""Every unary op with a meaning; `qnn.lut` carries its table itself."""


def unary_table(op: UnaryOp) -> Table:
    """``table[bits(input)] = bits(output)`` of a unary op, uint8[256].

    Raises `ValueError` where the op's arithmetic refuses its parameters (see `qdialect.quant_math`).
    """
    if isinstance(op, LeakyReluOp) and op.mode is not LeakyMode.LUT:
        builder = tvm_leaky_relu_table if op.mode is LeakyMode.FIXED else tflite_leaky_relu_table
        return builder(op.alpha, *_quantization(op))
    if isinstance(op, HardswishOp) and op.mode is HardswishMode.TFLITE:
        return tflite_hard_swish_table(*_quantization(op))
    return build_table(_function_of(op), *_quantization(op), op.entries, op.nan)


def _quantization(op: UnaryOp) -> tuple[float, int, Any, float, int, Any]:
    source = (op.input_scale, op.input_zero_point, dtype_of(op.input.type))
    return *source, op.output_scale, op.output_zero_point, dtype_of(op.output.type)


def _function_of(op: UnaryOp) -> ElementFunction:
    if isinstance(op, LeakyReluOp):
        return activations.leaky_relu(op.alpha)
    if isinstance(op, EluOp):
        return activations.elu(op.alpha)
    return _PLAIN_FUNCTIONS[type(op)]
