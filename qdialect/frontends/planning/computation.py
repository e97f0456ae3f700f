"""Results that are computed in float32 of float32 operands, whatever becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.dialect import F32MatmulOp
from qdialect.frontends.common import Array
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import F32Tensor, Plan

Build = Callable[[Emitter, Sequence[ir.Value]], ir.Value]
"""``build(emitter, operands)`` gives the result, all with the model's order of dimensions."""


@dataclass(frozen=True, eq=False)
class Computation(F32Tensor):
    """What `build` makes of f32 operands; with their channels last where `is_channels_last`."""

    operands: tuple[F32Tensor, ...]
    build: Build
    is_channels_last: bool = False

    def _f32(self, plan: Plan, name: str) -> Value:
        values = [operand.f32(plan, name) for operand in self.operands]

        def emit(emitter: Emitter) -> Emitted:
            held = [emitter.last(one) if self.is_channels_last else emitter.to_channels_first(one) for one in values]
            return self.build(emitter, held), self.is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


def product(source: F32Tensor, matrix: Array) -> Computation:
    """``x W`` in float32: x [..., K] times a constant [K, N]."""

    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        return emitter.build(F32MatmulOp, operands[0], emitter.constant(matrix), element="f32")

    return Computation((*source.shape[:-1], matrix.shape[1]), (source,), build)
