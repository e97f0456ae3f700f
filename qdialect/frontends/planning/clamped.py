"""f32 values between two bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import F32Tensor, Plan, Table, clip


@dataclass(frozen=True, eq=False)
class Clamped(F32Tensor):
    """The f32 values of `source` between two bounds.

    Quantization is monotonic, so the quantized values are clamped to the quantized bounds.
    """

    source: F32Tensor
    minimum: float
    maximum: float

    def _table(self) -> Table | None:
        table = self.source.table()
        return None if table is None else table.then(lambda f32_values: np.clip(f32_values, self.minimum, self.maximum))

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        source = self.source.quantized(plan, name, to)
        low, high = to.quantize_scalar(self.minimum), to.quantize_scalar(self.maximum)
        return source if (low, high) == (to.minimum, to.maximum) else clip(plan, name, source, low, high)

    def _f32(self, plan: Plan, name: str) -> Value:
        source = self.source.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            value, is_channels_last = emitter.either(source)
            shape = shape_of(value.type)
            for op, bound in (("arith.maximumf", self.minimum), ("arith.minimumf", self.maximum)):
                if np.isfinite(bound):
                    value = emitter.float_op(op, value, emitter.constant(np.broadcast_to(np.float32(bound), shape)))
            return value, is_channels_last

        return plan.compute(name, self.shape, "f32", emit)
