"""cat: f32 values side by side; every part gets the result's parameters by a table of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qdialect.dialect import ConcatOp
from qdialect.frontends.common import require
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, quantize, stored_axis
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports
from qdialect.frontends.torch.tensors import Quantized
from qdialect.profiles import PYTORCH

# Of the op that quantizes each part; more parts stay f32 values.
_MAX_PARTS = 16


@dataclass(frozen=True, eq=False)
class Joined(F32Tensor):
    """f32 values side by side along `axis`."""

    name: str
    parts: tuple[F32Tensor, ...]
    axis: int

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        if to.element not in EIGHT_BIT or len(self.parts) > _MAX_PARTS:
            return quantize(plan, name, self.f32(plan, self.name), to)
        return self.joined(plan, name, [part.quantized(plan, name, to) for part in self.parts], to)

    def joined(self, plan: Plan, name: str, values: list[Value], to: QuantizedTensorType) -> Value:
        """Quantized values side by side."""
        parameters: dict[str, Any] = {
            "input_scales": (to.scale,) * len(values),
            "input_zero_points": (to.zero_point,) * len(values),
            "output_scale": to.scale,
            "output_zero_point": to.zero_point,
            **PYTORCH.rescale,
        }

        def emit(emitter: Emitter) -> Emitted:
            operands, is_channels_last = emitter.alike(values)
            axis = stored_axis(self.axis, len(self.shape), is_channels_last)
            return emitter.build(ConcatOp, *operands, element=to.element, axis=axis, **parameters), is_channels_last

        return plan.compute(name, self.shape, to.element, emit)

    def _f32(self, plan: Plan, name: str) -> Value:
        values = [part.f32(plan, self.name) for part in self.parts]

        def emit(emitter: Emitter) -> Emitted:
            held, is_channels_last = emitter.alike(values)
            axis = stored_axis(self.axis, len(self.shape), is_channels_last)
            return emitter.concatenate(held, axis), is_channels_last

        return plan.compute(self.name, self.shape, "f32", emit)


def _have_one_meaning(parameters: Sequence[QuantizedTensorType]) -> bool:
    return all(own.same_meaning(parameters[0]) for own in parameters)


@imports("cat.default", "concat.default")
def _cat(call: Call) -> Result:
    """Quantized values of the same parameters keep them."""
    parts = [as_f32("tensors", tensor) for tensor in call.tensors("tensors")]
    require(len(parts) >= 1, "must have at least 1 part")
    rank, axis = len(parts[0].shape), call.integers("dim", 1)[0]
    require(-rank <= axis < rank, f"dim must be in [-{rank}, {rank}), but got {axis}")
    joined = Joined(call.node.outputs[0].shape, call.name, tuple(parts), axis % rank)
    sources = [part for part in parts if isinstance(part, Quantized) and part.is_eight_bit]
    if (
        len(sources) < len(parts)
        or len(parts) > _MAX_PARTS
        or not _have_one_meaning([source.parameters for source in sources])
    ):
        return joined
    values = joined.joined(call.plan, call.name, [source.values for source in sources], sources[0].parameters)
    return sources[0].with_values(values)
