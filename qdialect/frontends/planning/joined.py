"""Tensors side by side along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qdialect.dialect import ConcatOp
from qdialect.dialect.op_base import MAX_VARIADIC
from qdialect.frontends.common import Shape, require
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, Quantized, stored_axis


@dataclass(frozen=True, eq=False)
class Joined(F32Tensor):
    """f32 values side by side along `axis`; their quantized values get one scale by a table for each part."""

    parts: tuple[F32Tensor, ...]
    axis: int

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        if to.element not in EIGHT_BIT:
            return super()._quantized(plan, name, to)
        return self.concatenated(plan, name, [part.quantized(plan, name, to) for part in self.parts], to)

    def concatenated(self, plan: Plan, name: str, values: Sequence[Value], to: QuantizedTensorType) -> Value:
        """Quantized values of the parameters `to` side by side."""
        attributes = {
            "input_scales": (to.scale,) * len(values),
            "input_zero_points": (to.zero_point,) * len(values),
            "output_scale": to.scale,
            "output_zero_point": to.zero_point,
            **to.profile.rescale,
        }

        def emit(emitter: Emitter) -> Emitted:
            operands, is_channels_last = emitter.alike(values)
            axis = stored_axis(self.axis, len(self.shape), is_channels_last)
            if len(operands) > MAX_VARIADIC:
                return emitter.concatenate(operands, axis), is_channels_last
            return emitter.build(ConcatOp, *operands, element=to.element, axis=axis, **attributes), is_channels_last

        return plan.compute(name, self.shape, to.element, emit)

    def _f32(self, plan: Plan, name: str) -> Value:
        values = [part.f32(plan, name) for part in self.parts]

        def emit(emitter: Emitter) -> Emitted:
            operands, is_channels_last = emitter.alike(values)
            return emitter.concatenate(operands, stored_axis(self.axis, len(self.shape), is_channels_last)), (
                is_channels_last
            )

        return plan.compute(name, self.shape, "f32", emit)


def joined(parts: Sequence[F32Tensor], axis: int, name: str | None = None) -> Joined:
    """`parts` side by side along dimension `axis`; raises `UnsupportedError` where they differ beside it."""
    require(len(parts) >= 1, "must have at least 1 part, but got 0")
    return Joined(joined_shape([part.shape for part in parts], axis), tuple(parts), axis, name=name)


def joined_shape(shapes: Sequence[Shape], axis: int) -> Shape:
    """The shape of tensors of `shapes` side by side; raises `UnsupportedError` where they differ beside `axis`."""
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    ranks = {len(shape) for shape in shapes}
    require(len(others) == len(ranks) == 1, f"parts must agree but for axis {axis}, but got {sorted(others)}")
    first = shapes[0]
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def concatenation(plan: Plan, name: str, whole: Joined) -> F32Tensor:
    """What stands for `whole`: quantized values of the same parameters keep them."""
    parts = [part for part in whole.parts if isinstance(part, Quantized) and part.is_eight_bit]
    to = parts[0].parameters if parts else None
    if to is None or len(parts) < len(whole.parts) or not all(to.same_meaning(part.parameters) for part in parts):
        return whole
    return parts[0].with_values(whole.concatenated(plan, name, [part.values for part in parts], to))
