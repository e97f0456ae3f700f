"""Functions of two tensors that broadcast, and their QLinear forms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

from qdialect.dialect import AddOp, DivOp, MaximumOp, MinimumOp, MulOp, PreluOp, SubOp
from qdialect.dialect.binary_quantization import attributes_of
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.broadcasting import broadcast_shape
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.pointwise import Pointwise
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, Constant, F32Tensor, Plan, Table, Tensor
from qdialect.profiles import ORT
from qdialect.quant_math import (
    BinaryQuantization,
    Multiplier,
    PairArithmetic,
    Rounding,
    SubArithmetic,
    activations,
)
from qdialect.quant_math.expressions import Expression, Input

_OF_ONE_TYPE = ("Add", "Mul")
_LEFT, _RIGHT = Input(0), Input(1)
_ARITHMETIC: dict[str, Expression] = {
    "Add": _LEFT + _RIGHT,
    "Sub": _LEFT - _RIGHT,
    "Mul": _LEFT * _RIGHT,
    "Div": _LEFT / _RIGHT,
    "Pow": _LEFT.apply("math.powf", _RIGHT),
}
_EXTREMES: dict[str, Expression] = {"Max": _LEFT.at_least(_RIGHT), "Min": _LEFT.at_most(_RIGHT)}
_FUNCTIONS = {**_ARITHMETIC, **_EXTREMES, "PRelu": activations.leaky_relu(_RIGHT)}
_INTEGER_OPS: dict[str, tuple[type[BinaryOp], dict[str, Any]]] = {
    "Add": (AddOp, {"arithmetic": ORT.addition}),
    "Mul": (MulOp, {"rounding": Rounding.F32_RNE_ZP_FIRST, "multiplier": Multiplier.F32}),
    "Sub": (SubOp, {"arithmetic": SubArithmetic.FLOAT}),
    "Div": (DivOp, {"arithmetic": PairArithmetic.FLOAT}),
    "PRelu": (PreluOp, {"arithmetic": PairArithmetic.FLOAT}),
    "Max": (MaximumOp, {}),
    "Min": (MinimumOp, {}),
}
"""Sums and products have an integer kernel in ONNX Runtime; the others compute in float32 and quantize the result."""


@dataclass(frozen=True, eq=False)
class Binary(Pointwise):
    """A function of two tensors: of two quantized ones an integer op, else it runs in float32."""

    kind: str

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        pair = self._integer_operands(to)
        if pair is None:
            return super()._quantized(plan, name, to)
        (lhs, rhs), (left, right) = pair, (pair[0].parameters.params, pair[1].parameters.params)
        op_class, arithmetic = _INTEGER_OPS[self.kind]
        attributes = attributes_of(BinaryQuantization(left, right, to.params, (to.minimum, to.maximum)))

        def emit(emitter: Emitter) -> Emitted:
            operands, is_channels_last = emitter.alike((lhs.values, rhs.values))
            return emitter.build(op_class, *operands, element=to.element, **attributes, **arithmetic), is_channels_last

        return plan.compute(name, self.shape, to.element, emit)

    def _integer_operands(self, to: QuantizedTensorType) -> tuple[Quantized, Quantized] | None:
        lhs, rhs = self.operands
        if self.kind not in _INTEGER_OPS or not isinstance(lhs, Quantized) or not isinstance(rhs, Quantized):
            return None
        elements = (lhs.values.element, rhs.values.element, to.element)
        per_tensor = len(lhs.scales) == len(rhs.scales) == 1
        # ONNX Runtime has integer kernels for tensors of one type alone.
        fits = self.kind not in _OF_ONE_TYPE or len(set(elements)) == 1
        return (lhs, rhs) if per_tensor and fits and all(element in EIGHT_BIT for element in elements) else None


def binary(kind: str, lhs: F32Tensor, rhs: F32Tensor) -> Binary:
    """The function that the operator `kind` computes of two tensors."""
    return Binary(broadcast_shape(lhs.shape, rhs.shape), (lhs, rhs), _FUNCTIONS[kind], kind)


@imports(*_ARITHMETIC)
def _float_binary(call: Call) -> Tensor:
    call.count(2)
    return binary(call.node.kind, call.f32(0), call.f32(1))


@imports(*_EXTREMES, "Sum")
def _of_many(call: Call) -> Tensor:
    """Of any number of tensors; only that of two is one op."""
    call.count(1, len(call.inputs))
    kind = "Add" if call.node.kind == "Sum" else call.node.kind
    first, *others = (call.f32(index) for index in range(len(call.inputs)))
    return reduce(lambda lhs, rhs: binary(kind, lhs, rhs), others, first)


@imports("PRelu")
def _prelu(call: Call) -> Tensor:
    """Slopes broadcast to the data; one number is a function of the data alone."""
    call.count(2)
    data, slope = call.f32(0), call.tensor(1)
    if isinstance(slope, Constant) and slope.array.size == 1 and isinstance(data, Quantized) and data.is_eight_bit:
        return Table(data.shape, data, activations.leaky_relu(call.number(1)))
    slopes = call.f32(1)
    qdq_group = binary("PRelu", data, slopes)
    require(
        qdq_group.shape == data.shape,
        f"slope must broadcast to {list(data.shape)}, but got {list(slopes.shape)}",
    )
    return qdq_group


@imports("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul")
def _qlinear_binary(call: Call) -> Tensor:
    call.count(7, 8)
    kind = call.node.kind.removeprefix("com.microsoft.QLinear")
    qdq_group = binary(kind, dequantized(call, 0, 1, 0), dequantized(call, 3, 4, 0))
    return qdq_group.quantized(call.plan, call.name, parameters_of(call, 6, call.value(0).element))
