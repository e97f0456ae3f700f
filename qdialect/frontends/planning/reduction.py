"""Sums and means over dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qdialect._mlir import ir
from qdialect.dialect import MeanOp, SumOp
from qdialect.frontends.common import Shape
from qdialect.frontends.planning.blocked_sum import blocked_sum
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value, channels_last
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, Quantized, limit, mapping
from qdialect.quant_math.expressions import Input


@dataclass(frozen=True, eq=False)
class Reduced(F32Tensor):
    """A sum or mean: of 8-bit values the exact one, scaled and rounded once as `rounding` says, else in float32.

    Frameworks add float32 numbers, in an order of their own; a quantized value differs where that order's rounding
    takes the quotient over a tie.
    """

    op_class: type[SumOp | MeanOp]
    source: F32Tensor
    axes: tuple[int, ...]
    keep_dims: bool
    rounding: Mapping[str, Any]

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        source = self.source
        if not isinstance(source, Quantized) or not source.is_eight_bit or to.element not in EIGHT_BIT:
            return super()._quantized(plan, name, to)

        def emit(emitter: Emitter) -> Emitted:
            data, own, is_channels_last = over_axes(emitter, source.values, self.axes, self.keep_dims)
            attributes = {**mapping(source.parameters, to), **self.rounding, "axes": own, "keep_dims": self.keep_dims}
            return emitter.build(self.op_class, data, element=to.element, **attributes), is_channels_last

        return limit(plan, name, plan.compute(name, self.shape, to.element, emit), to)

    def _f32(self, plan: Plan, name: str) -> Value:
        source = self.source.f32(plan, name)
        count = math.prod(self.source.shape[axis] for axis in self.axes)

        def emit(emitter: Emitter) -> Emitted:
            data, own, is_channels_last = over_axes(emitter, source, self.axes, self.keep_dims)
            total = blocked_sum(emitter, data, own, self.keep_dims)
            is_mean = self.op_class is MeanOp
            return emitter.expression(Input() / count, total) if is_mean else total, is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


def reduced_shape(shape: Sequence[int], axes: Sequence[int], keep_dims: bool) -> Shape:
    """`shape` with the extents of `axes` 1 or left out."""
    return tuple(1 if i in axes else extent for i, extent in enumerate(shape) if keep_dims or i not in axes)


def over_axes(
    emitter: Emitter, value: Value, axes: Sequence[int], keep_dims: bool
) -> tuple[ir.Value, tuple[int, ...], bool]:
    """`value` to be reduced over `axes` of the model: as it is held, its own axes, and how the result is held."""
    held, is_channels_last = emitter.either(value)
    if not is_channels_last:
        return held, tuple(axes), False
    order = channels_last(len(value.shape))
    own = tuple(sorted(order.index(axis) for axis in axes))
    rest = [axis for axis in order if axis not in axes]
    if keep_dims or rest == sorted(rest):
        return held, own, keep_dims
    return emitter.to_channels_first(value), tuple(axes), False
