"""Activations and other functions of one number: clamps, and tables with entries as ONNX Runtime rounds them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qdialect.dialect import HardswishOp, LeakyReluOp, SigmoidOp, TanhOp, UnaryOp
from qdialect.dialect.enums import HardswishMode, LeakyMode
from qdialect.frontends.common import UnsupportedError, require
from qdialect.frontends.onnx.emitter import Emitter, Placed, Value
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import (
    EIGHT_BIT,
    Clamped,
    Constant,
    Parameters,
    Plan,
    Quantized,
    Real,
    Table,
    Tensor,
    mapping,
)
from qdialect.profiles import ORT
from qdialect.quant_math import ElementFunction, FloatArray, activations

_DEFAULT_LEAKY_ALPHA = float(np.float32(0.01))
_DEFAULT_HARD_ALPHA = float(np.float32(0.2))


@dataclass(frozen=True, eq=False)
class Function(Real):
    """A function of a quantized tensor that has an op of its own."""

    source: Quantized
    op_class: type[UnaryOp]
    function: ElementFunction
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def table(self) -> Table | None:
        table = self.source.table()
        return None if table is None else table.then(self.function)

    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        before = self.source.parameters
        for what, element in (("input", before.element), ("output", to.element)):
            require(element in EIGHT_BIT, f"{what} must be i8 or ui8, but got {element}")
        rounding = ORT.table

        def emit(emitter: Emitter) -> Placed:
            value, is_last = emitter.either(self.source.codes)
            parameters = {**mapping(before, to), **rounding, **self.attributes}
            return emitter.build(self.op_class, value, element=to.element, **parameters), is_last

        return plan.compute(name, self.shape, to.element, emit)


def _unary(kind: str, call: Call, source: Quantized) -> Function:
    if kind == "LeakyRelu":
        alpha = call.attribute("alpha", _DEFAULT_LEAKY_ALPHA)
        attributes = {"alpha": alpha, "mode": LeakyMode.LUT}
        return Function(source.shape, source, LeakyReluOp, activations.leaky_relu(alpha), attributes)
    if kind == "HardSwish":
        return Function(source.shape, source, HardswishOp, activations.hardswish, {"mode": HardswishMode.LUT})
    op_class, function = (SigmoidOp, activations.sigmoid) if kind == "Sigmoid" else (TanhOp, activations.tanh)
    return Function(source.shape, source, op_class, function)


@imports("Sigmoid", "Tanh", "LeakyRelu", "HardSwish")
def _function(call: Call) -> Tensor:
    """Of codes an op of its own, of numbers that are a function of codes a table."""
    call.count(1)
    source = call.real(0)
    if isinstance(source, Quantized):
        return _unary(call.node.kind, call, source)
    table = table_of(call, 0)
    return table.then(_unary(call.node.kind, call, table.source).function)


def table_of(call: Call, index: int) -> Table:
    """Input `index` as a function of one quantized tensor; raises `UnsupportedError` where it is none."""
    table = call.real(index).table()
    if table is None:
        raise UnsupportedError(f"input {index} must come from a DequantizeLinear")
    return table


@imports("com.microsoft.QLinearSigmoid", "com.microsoft.QLinearLeakyRelu")
def _qlinear_function(call: Call) -> Tensor:
    call.count(4, 5)
    source = dequantized(call, 0, 1, 0)
    unit = _unary(call.node.kind.removeprefix("com.microsoft.QLinear"), call, source)
    return unit.quantized(call.plan, call.name, parameters_of(call, 3, source.codes.element))


@imports("HardSigmoid")
def _hard_sigmoid(call: Call) -> Tensor:
    """``max(0, min(1, alpha * x + beta))`` in float32."""
    call.count(1)
    alpha = np.float32(call.attribute("alpha", _DEFAULT_HARD_ALPHA))
    beta = np.float32(call.attribute("beta", 0.5))

    def function(reals: FloatArray) -> FloatArray:
        return np.clip(reals * alpha + beta, 0, 1)

    return table_of(call, 0).then(function)


@imports("Relu")
def _relu(call: Call) -> Tensor:
    call.count(1)
    source = call.real(0)
    return Clamped(source.shape, source, 0.0, math.inf)


@imports("Clip")
def _clip(call: Call) -> Tensor:
    """Bounds are attributes in old operator sets and constant inputs in later ones."""
    call.count(1, 3)
    least, most = _bound(call, 1, "min", -math.inf), _bound(call, 2, "max", math.inf)
    require(least <= most, f"bounds must be ordered, but got {least} and {most}")
    source = call.real(0)
    return Clamped(source.shape, source, least, most)


def _bound(call: Call, index: int, name: str, default: float) -> float:
    tensor = call.optional(index)
    if tensor is None:
        return call.attribute(name, default)
    if isinstance(tensor, Quantized) and tensor.reals() is not None:
        tensor = Constant(np.asarray(tensor.reals()))
    require(isinstance(tensor, Constant), f"{name} must be constant")
    assert isinstance(tensor, Constant)
    require(tensor.array.size == 1, f"{name} must have 1 entry, but got {tensor.array.size}")
    return float(tensor.array.ravel()[0])
