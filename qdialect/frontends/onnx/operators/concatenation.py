"""Concat and QLinearConcat: every input gets the output's parameters by a table of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qdialect.dialect import ConcatOp
from qdialect.dialect.op_base import MAX_VARIADIC
from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of
from qdialect.frontends.onnx.operators.registry import Call, imports, imports_integers, value_of
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value, channels_last
from qdialect.frontends.planning.plain import INTEGERS, common_element
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, Tensor
from qdialect.profiles import ORT


@dataclass(frozen=True, eq=False)
class Joined(F32Tensor):
    """f32 values side by side along `axis`."""

    parts: tuple[F32Tensor, ...]
    axis: int

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        require(to.element in EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")
        values = [part.quantized(plan, name, to) for part in self.parts]
        return _joined(plan, name, values, to, self)

    def _f32(self, plan: Plan, name: str) -> Value:
        parts = [part.f32(plan, name) for part in self.parts]

        def emit(emitter: Emitter) -> Emitted:
            operands, is_channels_last = emitter.alike(parts)
            axis = channels_last(len(self.shape)).index(self.axis) if is_channels_last else self.axis
            return emitter.concatenate(operands, axis), is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


def _joined(plan: Plan, name: str, values: Sequence[Value], to: QuantizedTensorType, joined: Joined) -> Value:
    def emit(emitter: Emitter) -> Emitted:
        operands, is_channels_last = emitter.alike(values)
        rank = len(joined.shape)
        stored = (0, rank - 1, *range(1, rank - 1))
        axis = stored[joined.axis] if is_channels_last else joined.axis
        if len(operands) > MAX_VARIADIC:
            return emitter.concatenate(operands, axis), is_channels_last
        concatenated = emitter.build(
            ConcatOp,
            *operands,
            element=to.element,
            axis=axis,
            input_scales=(to.scale,) * len(values),
            input_zero_points=(to.zero_point,) * len(values),
            output_scale=to.scale,
            output_zero_point=to.zero_point,
            **ORT.rescale,
        )
        return concatenated, is_channels_last

    return plan.compute(name, joined.shape, to.element, emit)


@imports("Concat")
def _concat(call: Call) -> Tensor:
    """Quantized values of the same parameters keep them."""
    joined = _join(call, [call.f32(index) for index in range(len(call.inputs))])
    parts = [part for part in joined.parts if isinstance(part, Quantized) and len(part.scales) == 1]
    if len(parts) < len(joined.parts) or len({part.parameters for part in parts}) > 1:
        return joined
    to = parts[0].parameters
    if to.element not in EIGHT_BIT:
        return joined
    return parts[0].with_values(_joined(call.plan, call.name, [part.values for part in parts], to, joined))


@imports("com.microsoft.QLinearConcat")
def _qlinear_concat(call: Call) -> Tensor:
    count = len(call.inputs)
    require(count >= 5 and count % 3 == 2, f"must have 2 inputs and 3 for each part, but got {count}")
    parts = [dequantized(call, index, index + 1, 0) for index in range(2, count, 3)]
    joined = _join(call, parts)
    return joined.quantized(call.plan, call.name, parameters_of(call, 0, parts[0].values.element))


@imports_integers("Concat")
def _concat_integers(call: Call) -> Tensor:
    """Any number of them: what lies side by side stays what it is."""
    parts = [value_of(call, index) for index in range(len(call.inputs))]
    element = common_element(parts, ("i1", *INTEGERS))
    shape, axis = _joined_shape(call, [part.shape for part in parts])

    def emit(emitter: Emitter) -> Emitted:
        return emitter.concatenate([emitter.to_channels_first(part) for part in parts], axis), False

    return call.plan.compute(call.name, shape, element, emit)


def _join(call: Call, parts: Sequence[F32Tensor]) -> Joined:
    require(len(parts) >= 1, "must have at least 1 part, but got 0")
    shape, along = _joined_shape(call, [part.shape for part in parts])
    return Joined(shape, tuple(parts), along)


def _joined_shape(call: Call, shapes: Sequence[Shape]) -> tuple[Shape, int]:
    """The shape of tensors of `shapes` side by side, and the dimension along which they lie so."""
    rank = len(shapes[0])
    require("axis" in call.node.attributes, "attribute 'axis' is missing")
    axis: int = call.attribute("axis", 0)
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    along = axis % rank
    others = {(*shape[:along], *shape[along + 1 :]) for shape in shapes}
    ranks = {len(shape) for shape in shapes}
    require(len(others) == len(ranks) == 1, f"parts must agree but for axis {axis}, but got {sorted(others)}")
    extent = sum(shape[along] for shape in shapes)
    return (*shapes[0][:along], extent, *shapes[0][along + 1 :]), along
