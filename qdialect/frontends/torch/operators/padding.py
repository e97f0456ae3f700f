"""Plans constant_pad_nd and cat: a number around a tensor, and tensors side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Shape, require
from qdialect.frontends.building.slices import Slice, framed
from qdialect.frontends.planning.elementwise import cast_array, element_type, tensor_of, value_of_tensor
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value, channels_last
from qdialect.frontends.planning.movement import Padding, Slicing, concatenation, joined, joined_shape
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import F32Tensor, Plan, QuantizedTensorType, Tensor
from qdialect.frontends.torch.operators.indexing import axis_of
from qdialect.frontends.torch.operators.movement import moved
from qdialect.frontends.torch.operators.plain import as_element, element_of_result
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports, imports_plain
from qdialect.frontends.torch.operators.tensors import Quantized
from qdialect.ir._mlir import ir

# constant_pad_nd: a number around a tensor; where the tensor is quantized afterwards, its quantized value.

_LARGEST_WHOLE = 2**24


@dataclass(frozen=True)
class Border:
    """How many elements are added before and after each dimension; fewer than 0 are taken away."""

    low: Shape
    high: Shape

    def stored(self, is_channels_last: bool) -> Border:
        """Of a tensor whose channels come last, or not."""
        order = channels_last(len(self.low)) if is_channels_last else range(len(self.low))
        return Border(tuple(self.low[axis] for axis in order), tuple(self.high[axis] for axis in order))

    def slices(self, shape: Shape) -> list[Slice]:
        """What stays of a tensor."""
        return [
            Slice(max(-low, 0), 1, extent + min(low, 0) + min(high, 0))
            for extent, low, high in zip(shape, self.low, self.high, strict=True)
        ]

    def filled(self, emitter: Emitter, value: ir.Value, fill: int) -> ir.Value:
        """A tensor within its border of the integer `fill`."""
        return framed(emitter, value, self.low, self.high, fill=fill)


@dataclass(frozen=True, eq=False)
class Padded(F32Tensor):
    """`source` within a border of the number `fill`."""

    source: F32Tensor
    border: Border
    fill: float

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        return self.filled(plan, name, self.source.quantized(plan, name, to), to.quantize_scalar(self.fill))

    def filled(self, plan: Plan, name: str, values: Value, fill: int) -> Value:
        """Quantized values within a border of the quantized value `fill`."""

        def emit(emitter: Emitter) -> Emitted:
            held, is_channels_last = emitter.either(values)
            return self.border.stored(is_channels_last).filled(emitter, held, fill), is_channels_last

        return plan.compute(name, self.shape, values.element, emit)

    def _f32(self, plan: Plan, name: str) -> Value:
        source = self.source.f32(plan, name)
        if self.fill.is_integer() and abs(self.fill) <= _LARGEST_WHOLE:
            return self.filled(plan, name, source, int(self.fill))

        def emit(emitter: Emitter) -> Emitted:
            # Zeros around the differences from `fill` would round: a mask selects the border.
            held, is_channels_last = emitter.either(source)
            border = self.border.stored(is_channels_last)
            padded = border.filled(emitter, held, 0)
            shape = shape_of(padded.type)
            inside = border.filled(emitter, emitter.number(0.0, shape_of(held.type)), 1)
            outside = emitter.compare(_GREATER, inside, emitter.number(0.5, shape))
            return emitter.select(outside, emitter.number(self.fill, shape), padded), is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


# arith.cmpf's number of "ordered and greater than".
_GREATER = 2


@imports("constant_pad_nd.default")
def _pad(call: Call) -> Result:
    """Pairs of counts from the last dimension on."""
    source = call.tensor("self")
    pads, rank = call.dimensions("pad"), len(source.shape)
    require(len(pads) % 2 == 0 and len(pads) <= 2 * rank, f"pad must have pairs for {rank} dimensions at most")
    pairs = [(0, 0)] * (rank - len(pads) // 2) + list(zip(pads[::2], pads[1::2], strict=True))[::-1]
    border = Border(tuple(low for low, _ in pairs), tuple(high for _, high in pairs))
    value = call.argument("value") or 0
    fill = float(value)
    shape = tuple(extent + low + high for extent, (low, high) in zip(source.shape, pairs, strict=True))
    kept = [extent + min(low, 0) + min(high, 0) for extent, (low, high) in zip(source.shape, pairs, strict=True)]
    require(min(kept, default=1) >= 1, f"pad must leave an element of each dimension, but got {list(pads)}")
    if element_type(source) != "f32":
        return _plain(call, source, border, value)
    padded = Padded(shape, as_f32("self", source), border, fill, name=call.name)
    if not isinstance(source, Quantized) or not source.is_eight_bit:
        return padded
    parameters = source.parameters
    quantized = parameters.quantize_scalar(fill)
    if parameters.dequantize(np.array([quantized]))[0] != np.float32(fill):
        return padded
    return source.with_values(padded.filled(call.plan, call.name, source.values, quantized))


def _plain(call: Call, source: Tensor, border: Border, number: float) -> Tensor:
    """Integers or booleans within a border; a tensor of no pads is itself."""
    kept = moved(call, source, Slicing.of(border.slices(source.shape)))
    low, high = (tuple(max(count, 0) for count in counts) for counts in (border.low, border.high))
    shape = tuple(map(sum, zip(kept.shape, low, high, strict=True)))
    fill = int(cast_array(np.array(number), element_type(source)))
    return moved(call, kept, Padding(shape, low, high, fill)) if any((*low, *high)) else kept


# cat: f32 values side by side, and integers.


@imports("cat.default", "concat.default")
def _cat(call: Call) -> Result:
    parts = [as_f32("tensors", tensor) for tensor in call.tensors("tensors")]
    require(len(parts) >= 1, "must have at least 1 part")
    axis = axis_of(call, len(parts[0].shape))
    return concatenation(call.plan, call.name, joined(parts, axis, call.name))


@imports_plain("cat.default", "concat.default")
def _cat_of_integers(call: Call) -> Result:
    """Each part in the type of the result."""
    element = element_of_result(call)
    values = [value_of_tensor(call, as_element(call, tensor, element)) for tensor in call.tensors("tensors")]
    axis = axis_of(call, len(values[0].shape))

    def emit(emitter: Emitter) -> Emitted:
        return emitter.concatenate([emitter.to_channels_first(value) for value in values], axis), False

    shape = joined_shape([value.shape for value in values], axis)
    return tensor_of(call.plan.compute(call.name, shape, element, emit))
