"""Results that are computed in float32 of float32 operands, whatever becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.frontends.common import Shape
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import F32Tensor, Plan, quantize
from qdialect.frontends.torch.operators.registry import Call

Build = Callable[[Emitter, Sequence[ir.Value]], ir.Value]
"""``build(emitter, operands)`` gives the result, all with the program's order of dimensions."""


@dataclass(frozen=True, eq=False)
class Computation(F32Tensor):
    """What `build` makes of f32 operands; with their channels last where `is_channels_last`."""

    name: str
    operands: tuple[F32Tensor, ...]
    build: Build
    is_channels_last: bool = False

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        return quantize(plan, name, self.f32(plan, self.name), to)

    def _f32(self, plan: Plan, name: str) -> Value:
        values = [operand.f32(plan, self.name) for operand in self.operands]

        def emit(emitter: Emitter) -> Emitted:
            held = [emitter.last(one) if self.is_channels_last else emitter.to_channels_first(one) for one in values]
            return self.build(emitter, held), self.is_channels_last

        return plan.compute(self.name, self.shape, "f32", emit)


def computed(call: Call, shape: Shape, operands: Sequence[F32Tensor], build: Build) -> Computation:
    """The result of a node of `shape`."""
    return Computation(shape, call.name, tuple(operands), build)
