"""Where and QLinearWhere: one of two tensors, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.quantization import f32_values_of, quantized_by
from qdialect.frontends.onnx.operators.registry import Call, imports, value_of
from qdialect.frontends.planning.broadcasting import broadcast_shape, operands_of_shape
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.plain import INTEGERS, common_element, element_type, ternary
from qdialect.frontends.planning.tensors import F32Tensor, Plan, Tensor


@dataclass(frozen=True, eq=False)
class Chosen(F32Tensor):
    """`lhs` where `condition` holds, `rhs` elsewhere, in float32."""

    condition: Value
    lhs: F32Tensor
    rhs: F32Tensor

    def _f32(self, plan: Plan, name: str) -> Value:
        values = [self.condition, *(part.f32(plan, name) for part in (self.lhs, self.rhs))]

        def emit(emitter: Emitter) -> Emitted:
            (holds, chosen, other), is_channels_last = operands_of_shape(emitter, values, self.shape)
            return emitter.select(holds, chosen, other), is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


@imports("Where")
def _where(call: Call) -> Tensor:
    call.count(3)
    condition = value_of(call, 0)
    require(condition.element == "i1", f"condition must be i1, but got {condition.element}")
    if all(element_type(call.tensor(index)) == "f32" for index in (1, 2)):
        lhs, rhs = call.f32(1), call.f32(2)
        shape = reduce(broadcast_shape, [condition.shape, lhs.shape, rhs.shape])
        return Chosen(shape, condition, lhs, rhs)
    values = [value_of(call, 1), value_of(call, 2)]
    element = common_element(values, (*INTEGERS, "i1"))
    return ternary(call, [condition, *values], element, lambda s, holds, lhs, rhs: s.select(holds, lhs, rhs))


@imports("com.microsoft.QLinearWhere")
def _qlinear_where(call: Call) -> Tensor:
    """Both tensors are quantized as the result before one is chosen."""
    call.count(9)
    condition = value_of(call, 0)
    require(condition.element == "i1", f"condition must be i1, but got {condition.element}")
    element = call.value(1).element
    values = [quantized_by(call, f32_values_of(call, index, index + 1, 0), 7, element) for index in (1, 4)]
    return ternary(call, [condition, *values], element, lambda s, holds, lhs, rhs: s.select(holds, lhs, rhs))
