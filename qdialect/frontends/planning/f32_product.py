"""A product of f32 values and a constant matrix."""

from __future__ import annotations

from dataclasses import dataclass

from qdialect.dialect import F32MatmulOp
from qdialect.frontends.common import Array
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import F32Tensor, Plan, quantize


@dataclass(frozen=True, eq=False)
class Product(F32Tensor):
    """``x W`` in float32: x [..., K] times a constant [K, N]."""

    source: F32Tensor
    matrix: Array

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        return quantize(plan, name, self.f32(plan, name), to)

    def _f32(self, plan: Plan, name: str) -> Value:
        source = self.source.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            data, matrix = emitter.to_channels_first(source), emitter.constant(self.matrix)
            return emitter.build(F32MatmulOp, data, matrix, element="f32"), False

        return plan.compute(name, self.shape, "f32", emit)
