"""Convolutions and matrix products that are not quantized: float32, one term added after another.

PyTorch adds the terms in an order of its own, so results agree but for what float32 loses in a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, require
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import EIGHT_BIT, Constant, F32Tensor, Plan
from qdialect.frontends.torch.operators.registry import Call
from qdialect.frontends.torch.tensors import Quantized


@dataclass(frozen=True, eq=False)
class F32Contraction(F32Tensor):
    """`contract` of the operands' values, channels last, plus a bias; `finish` brings it to the model's shape."""

    operands: tuple[F32Tensor, ...]
    bias: Array | None
    contract: Callable[[Emitter, tuple[Value, ...]], ir.Value]
    finish: Callable[[Emitter, ir.Value], Emitted]

    def _f32(self, plan: Plan, name: str) -> Value:
        values = tuple(operand.f32(plan, name) for operand in self.operands)

        def emit(emitter: Emitter) -> Emitted:
            f32 = self.contract(emitter, values)
            if self.bias is not None:
                bias = emitter.build(BroadcastOp, emitter.constant(self.bias), element="f32", shape=shape_of(f32.type))
                f32 = emitter.float_op("arith.addf", f32, bias)
            return self.finish(emitter, f32)

        return plan.compute(name, self.shape, "f32", emit)


def is_integer(call: Call, data: str, weight: str) -> bool:
    """Whether both operands are quantized values of 8 bits, those of the weight constant."""
    left, right = call.tensor(data), call.tensor(weight)
    if not isinstance(left, Quantized) or not isinstance(right, Quantized):
        return False
    return left.is_eight_bit and right.values.data is not None and right.values.element in EIGHT_BIT


def f32_weight(call: Call, name: str) -> Array | None:
    """The numbers of a constant weight, None where it is computed."""
    tensor = call.tensor(name)
    if isinstance(tensor, Constant):
        require(tensor.array.dtype == np.float32, f"argument '{name}' must be f32, but got {tensor.array.dtype}")
        return tensor.array
    return tensor.f32_values() if isinstance(tensor, Quantized) else None
