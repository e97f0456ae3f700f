"""Activations and other functions of one number: clamps, and tables with entries as ONNX Runtime rounds them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qdialect.dialect import HardswishOp, LeakyReluOp, SigmoidOp, TanhOp, UnaryOp
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.formula import applied
from qdialect.frontends.onnx.operators.integer_arithmetic import clipped_integers
from qdialect.frontends.onnx.operators.parts import part_of
from qdialect.frontends.onnx.operators.quantization import f32_values_of, quantized_by
from qdialect.frontends.onnx.operators.registry import Call, imports, number_of
from qdialect.frontends.onnx.tensors import Quantized, clamp_integers
from qdialect.frontends.planning.clamped import Clamped
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.pointwise import Pointwise
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, Constant, Plan, Tensor, known_array, mapping
from qdialect.profiles import ORT
from qdialect.quant_math import activations, onnx_activations
from qdialect.quant_math.choices import HardswishMode, LeakyMode
from qdialect.quant_math.expressions import Expression

_DEFAULT_LEAKY_ALPHA = float(np.float32(0.01))
_OPS: dict[str, type[UnaryOp]] = {
    "HardSwish": HardswishOp,
    "LeakyRelu": LeakyReluOp,
    "Sigmoid": SigmoidOp,
    "Tanh": TanhOp,
}


@dataclass(frozen=True, eq=False)
class Function(Pointwise):
    """A function of an 8-bit tensor that has an op of its own."""

    op_class: type[UnaryOp]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        (source,) = self.operands
        if to.element not in EIGHT_BIT or not isinstance(source, Quantized):
            return super()._quantized(plan, name, to)
        before, values = source.parameters, source.values

        def emit(emitter: Emitter) -> Emitted:
            value, is_channels_last = emitter.either(values)
            parameters = {**mapping(before, to), **ORT.table, **self.attributes}
            return emitter.build(self.op_class, value, element=to.element, **parameters), is_channels_last

        return plan.compute(name, self.shape, to.element, emit)


def _unary(kind: str, call: Call, source: Quantized) -> Function:
    op_class, attributes = _OPS[kind], dict[str, Any]()
    if kind == "HardSwish":
        attributes["mode"] = HardswishMode.LUT
    if kind == "LeakyRelu":
        attributes |= {"alpha": call.attribute("alpha", _DEFAULT_LEAKY_ALPHA), "mode": LeakyMode.LUT}
    return Function(source.shape, (source,), _formula(kind, call), op_class, attributes)


def _formula(kind: str, call: Call) -> Expression:
    if kind == "LeakyRelu":
        return activations.leaky_relu(call.attribute("alpha", _DEFAULT_LEAKY_ALPHA))
    return {"Sigmoid": activations.sigmoid, "Tanh": activations.tanh, "HardSwish": onnx_activations.hard_swish}[kind]


@imports(*_OPS)
def _function(call: Call) -> Tensor:
    """Of quantized values an op of its own."""
    call.count(1)
    source = call.f32(0)
    if isinstance(source, Quantized) and source.is_eight_bit:
        return _unary(call.node.kind, call, source)
    return applied(call, _formula(call.node.kind, call))


@imports("com.microsoft.QLinearSigmoid", "com.microsoft.QLinearLeakyRelu")
def _qlinear_function(call: Call) -> Tensor:
    call.count(4, 5)
    kind, source = call.node.kind.removeprefix("com.microsoft.QLinear"), f32_values_of(call, 0, 1, 0)
    is_plain = not isinstance(source, Quantized)
    qdq_group = Pointwise(source.shape, (source,), _formula(kind, call)) if is_plain else _unary(kind, call, source)
    return quantized_by(call, qdq_group, 3, call.value(0).element)


@imports("Relu")
def _relu(call: Call) -> Tensor:
    call.count(1)
    return _clamped(call, 0.0, math.inf)


@imports("Clip")
def _clip(call: Call) -> Tensor:
    """Bounds are attributes in old operator sets and constant inputs in later ones; the upper one wins."""
    call.count(1, 3)
    if _is_wide(call.tensor(0)):
        return clipped_integers(call)
    if any(tensor is not None and known_array(tensor) is None for tensor in map(call.optional, (1, 2))):
        return _between(call)
    minimum, maximum = _bound(call, 1, "min", -math.inf), _bound(call, 2, "max", math.inf)
    return _clamped(call, min(minimum, maximum), maximum)


def _between(call: Call) -> Tensor:
    """Input 0 between bounds that are known at run time alone."""
    found: Tensor = call.f32(0)
    for kind, index in (("Max", 1), ("Min", 2)):
        bound = call.optional(index)
        if bound is not None:
            require(math.prod(bound.shape) == 1, f"input {index} must have 1 element, but got {list(bound.shape)}")
            found = part_of(call, kind, [found, bound])
    return found


def _is_wide(source: Tensor) -> bool:
    """Whether a tensor holds integers of more than 8 bits, or constant ones."""
    if isinstance(source, Constant):
        return source.array.dtype.kind in "iu"
    return isinstance(source, Value) and source.element not in EIGHT_BIT


def _clamped(call: Call, minimum: float, maximum: float) -> Tensor:
    """Input 0 between two bounds; 8-bit integers that no DequantizeLinear turned into f32 values are clamped too."""
    source = call.tensor(0)
    if isinstance(source, Value):
        require(source.element in EIGHT_BIT, f"input 0 must be f32, i8 or ui8, but got {source.element}")
        return clamp_integers(call.plan, call.name, source, minimum, maximum)
    f32 = call.f32(0)
    return Clamped(f32.shape, f32, minimum, maximum)


def _bound(call: Call, index: int, name: str, default: float) -> float:
    tensor = call.optional(index)
    if tensor is None:
        return call.attribute(name, default)
    bound = number_of(tensor, name)
    require(not math.isnan(bound), f"{name} must be a number, but got nan")
    return bound
