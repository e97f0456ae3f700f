"""Concat and QLinearConcat: every input gets the output's parameters by a table of its own."""

from __future__ import annotations

import numpy as np

from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.quantization import f32_values_of, quantized_by
from qdialect.frontends.onnx.operators.registry import Call, imports, imports_integers, value_of
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.emitter import Emitted, Emitter
from qdialect.frontends.planning.joined import concatenation, joined, joined_shape
from qdialect.frontends.planning.plain import INTEGERS, common_element
from qdialect.frontends.planning.tensors import Constant, Tensor, is_known, known


@imports("Concat")
def _concat(call: Call) -> Tensor:
    """What is known stays known, and quantized where the parts agree in their parameters."""
    parts = [call.f32(index) for index in range(len(call.inputs))]
    axis = _axis(call, 0)
    whole = joined(parts, axis)
    if not all(map(is_known, call.inputs)):
        return concatenation(call.plan, call.name, whole)
    call.plan.budget.spend_constant(whole.shape, 4)
    quantized = [part for part in parts if isinstance(part, Quantized)]
    kinds = {(part.values.element, part.scales, part.zero_points, part.axis) for part in quantized}
    if len(quantized) < len(parts) or len(kinds) > 1 or (len(quantized[0].scales) > 1 and quantized[0].axis == axis):
        return Constant(np.concatenate([call.constant(index) for index in range(len(parts))], axis))
    values = np.concatenate([part.values.data for part in quantized if part.values.data is not None], axis)
    return quantized[0].with_values(known(call.name, values))


@imports("com.microsoft.QLinearConcat")
def _qlinear_concat(call: Call) -> Tensor:
    count = len(call.inputs)
    require(count >= 5 and count % 3 == 2, f"must have 2 inputs and 3 for each part, but got {count}")
    parts = [f32_values_of(call, index, index + 1, 0) for index in range(2, count, 3)]
    whole = joined(parts, _axis(call, 2))
    return quantized_by(call, whole, 0, call.value(2).element)


@imports_integers("Concat")
def _concat_integers(call: Call) -> Tensor:
    """Any number of them: what lies side by side stays what it is."""
    parts = [value_of(call, index) for index in range(len(call.inputs))]
    element = common_element(parts, ("i1", *INTEGERS))
    axis = _axis(call, 0)
    shape = joined_shape([part.shape for part in parts], axis)

    def emit(emitter: Emitter) -> Emitted:
        return emitter.concatenate([emitter.to_channels_first(part) for part in parts], axis), False

    return call.plan.compute(call.name, shape, element, emit)


def _axis(call: Call, first: int) -> int:
    """The dimension along which tensors of the rank of input `first` lie side by side."""
    require("axis" in call.node.attributes, "attribute 'axis' is missing")
    axis, rank = call.attribute("axis", 0), len(call.tensor(first).shape)
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    return axis % rank
