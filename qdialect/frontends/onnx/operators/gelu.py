"""Gelu with a bias that is added before: BiasGelu and FastGelu of com.microsoft."""

from __future__ import annotations

from qdialect.frontends.onnx.operators.elementwise import binary
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.pointwise import Pointwise
from qdialect.frontends.planning.tensors import Tensor
from qdialect.quant_math import activations


@imports("com.microsoft.BiasGelu")
def _bias_gelu(call: Call) -> Tensor:
    call.count(2)
    total = binary("Add", call.f32(0), call.f32(1))
    return Pointwise(total.shape, (total,), activations.gelu)


@imports("com.microsoft.FastGelu")
def _fast_gelu(call: Call) -> Tensor:
    call.count(1, 2)
    source = call.f32(0) if call.optional(1) is None else binary("Add", call.f32(0), call.f32(1))
    return Pointwise(source.shape, (source,), activations.gelu_tanh)
