"""Comparisons of f32 values, and Where, which chooses by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect.frontends.common import Shape, UnsupportedError
from qdialect.frontends.onnx.operators.broadcasting import broadcast_shape, float_operands
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import F32Tensor, Plan, Tensor, quantize

# Numbers of arith.cmpf's ordered predicates; a comparison with NaN does not hold.
_PREDICATES = {"Equal": 1, "Greater": 2, "GreaterOrEqual": 3, "Less": 4, "LessOrEqual": 5}


@dataclass(frozen=True, eq=False)
class Condition(F32Tensor):
    """Where a comparison holds; only a Where can use it."""

    predicate: int
    lhs: F32Tensor
    rhs: F32Tensor

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        raise UnsupportedError("a comparison must be used by a Where")

    def _f32(self, plan: Plan, name: str) -> Value:
        raise UnsupportedError("a comparison must be used by a Where")


@dataclass(frozen=True, eq=False)
class Chosen(F32Tensor):
    """`lhs` where `condition` holds, `rhs` elsewhere, in float32."""

    condition: Condition
    lhs: F32Tensor
    rhs: F32Tensor

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        return quantize(plan, name, self.f32(plan, name), to)

    def _f32(self, plan: Plan, name: str) -> Value:
        parts = (self.condition.lhs, self.condition.rhs, self.lhs, self.rhs)
        values = [part.f32(plan, name) for part in parts]

        def emit(emitter: Emitter) -> Emitted:
            (left, right, chosen, other), is_channels_last = float_operands(emitter, values, self.shape)
            holds = emitter.compare(self.condition.predicate, left, right)
            return emitter.select(holds, chosen, other), is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


@imports(*_PREDICATES)
def _comparison(call: Call) -> Tensor:
    call.count(2)
    lhs, rhs = call.f32(0), call.f32(1)
    return Condition(broadcast_shape(lhs.shape, rhs.shape), _PREDICATES[call.node.kind], lhs, rhs)


@imports("Where")
def _where(call: Call) -> Tensor:
    call.count(3)
    condition = call.tensor(0)
    if not isinstance(condition, Condition):
        raise UnsupportedError("input 0 must be a comparison of floats")
    lhs, rhs = call.f32(1), call.f32(2)
    shape: Shape = np.broadcast_shapes(condition.shape, broadcast_shape(lhs.shape, rhs.shape))
    return Chosen(shape, condition, lhs, rhs)
