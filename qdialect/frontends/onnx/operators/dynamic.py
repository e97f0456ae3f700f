"""DynamicQuantizeLinear, and products of its results: parameters that are computed from the data at run time."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import arith, ir
from qdialect.dialect import F32MaxOp, F32MinOp
from qdialect.dialect.type_constraints import element_of
from qdialect.frontends.common import Array, require
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.emitter import Emission, Emitter, Value
from qdialect.frontends.planning.f32_builder import F32Builder
from qdialect.frontends.planning.tensors import Computed, Tensor

_MAX_CODE = 255.0
# Of arith.cmpf: ordered and equal.
_EQUAL = 1


@imports("DynamicQuantizeLinear")
def _dynamic_quantize_linear(call: Call) -> tuple[Tensor, ...]:
    """From the range [min(x, 0), max(x, 0)] of the whole tensor, as ONNX Runtime computes it in float32.

    ``scale = (max - min) / 255``, 1 where both are 0; ``zero_point = half_even(clamp(0 - min / scale))`` and
    ``quantized values = clamp(half_even(x / scale) + zero_point)``, both within 0..255.
    """
    call.count(1)
    names = [name or call.name for name in call.node.outputs]
    require(len(names) == 3, f"must have 3 outputs, but got {len(names)}")
    data = call.f32(0).f32(call.plan, call.name)
    require(len(data.shape) >= 1, "input must have at least 1 dimension, but got 0")
    minimum = call.plan.compute(names[1], (), "f32", _extreme(data, F32MinOp, "minimumf"))
    maximum = call.plan.compute(names[1], (), "f32", _extreme(data, F32MaxOp, "maximumf"))

    def scale_of(emitter: Emitter) -> tuple[ir.Value, bool]:
        s, low, high = F32Builder(emitter, ()), emitter.to_channels_first(minimum), emitter.to_channels_first(maximum)
        extent = s("subf", high, low)
        bits = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))
        predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _EQUAL)
        is_empty = arith.CmpFOp(predicate, extent, emitter.number(0.0, ()), results=[bits]).result
        chosen = emitter.upstream(
            "arith.select", "f32", is_empty, emitter.number(1.0, ()), s("divf", extent, _MAX_CODE)
        )
        return chosen, False

    scale = call.plan.compute(names[1], (), "f32", scale_of)

    def point_of(emitter: Emitter) -> tuple[ir.Value, bool]:
        s = F32Builder(emitter, ())
        exact = s("subf", 0.0, s("divf", emitter.to_channels_first(minimum), emitter.to_channels_first(scale)))
        return s("roundeven", s("minimumf", s("maximumf", exact, 0.0), _MAX_CODE)), False

    point = call.plan.compute(names[2], (), "f32", point_of)

    def quantize(emitter: Emitter) -> tuple[ir.Value, bool]:
        s, shape = F32Builder(emitter, data.shape), data.shape
        ratio = s("divf", emitter.to_channels_first(data), emitter.broadcast(emitter.to_channels_first(scale), shape))
        zero_point = emitter.broadcast(emitter.to_channels_first(point), shape)
        # Bounds are integers: clamping first keeps what is added small and exact.
        low, high = s("subf", 0.0, zero_point), s("subf", _MAX_CODE, zero_point)
        rounded = s("roundeven", s("minimumf", s("maximumf", ratio, low), high))
        return _as_ui8(emitter, s("addf", rounded, zero_point)), False

    values = call.plan.compute(names[0], data.shape, "ui8", quantize)
    zero_point = call.plan.compute(
        names[2], (), "ui8", lambda emitter: (_as_ui8(emitter, emitter.to_channels_first(point)), False)
    )
    return values, Computed((), scale), zero_point


def _extreme(data: Value, op_class: type[F32MinOp] | type[F32MaxOp], joined: str) -> Emission:
    """The smallest or largest of the numbers and zero."""

    def emit(emitter: Emitter) -> tuple[ir.Value, bool]:
        axes = tuple(range(len(data.shape)))
        found = emitter.build(op_class, emitter.to_channels_first(data), element="f32", axes=axes, keep_dims=False)
        return F32Builder(emitter, ())(joined, found, 0.0), False

    return emit


def _as_ui8(emitter: Emitter, value: ir.Value) -> ir.Value:
    """A whole number in 0..255 as `ui8`."""
    narrow = emitter.upstream("arith.trunci", "i8", emitter.upstream("arith.fptosi", "i32", value))
    return emitter.upstream("tensor.bitcast", "ui8", narrow)


def corrected(call: Call, sums: Value, zero_point: Value, columns: Array) -> Value:
    """Products with quantized values, less ``zero_point * columns``: those with what the quantized values stand for.

    `columns` are the sums of the matrix's columns; differences wrap as sums do.
    """
    require(zero_point.shape in ((), (1,)), f"zero point must have 1 entry, but got {list(zero_point.shape)}")

    def emit(emitter: Emitter) -> tuple[ir.Value, bool]:
        totals = emitter.constant(columns.astype(np.int32))
        point = _widened(emitter, emitter.reshape(emitter.to_channels_first(zero_point), ()))
        lost = emitter.upstream("arith.muli", "i32", totals, emitter.broadcast(point, columns.shape))
        held = emitter.to_channels_first(sums)
        return emitter.upstream("arith.subi", "i32", held, emitter.broadcast(lost, sums.shape)), False

    return call.plan.compute(call.name, sums.shape, "i32", emit)


def _widened(emitter: Emitter, quantized: ir.Value) -> ir.Value:
    """An 8-bit integer as i32."""
    if element_of(quantized.type) != "ui8":
        return emitter.upstream("arith.extsi", "i32", quantized)
    return emitter.upstream("arith.extui", "i32", emitter.upstream("tensor.bitcast", "i8", quantized))
