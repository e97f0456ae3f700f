"""Float32 tensors quantized when the network runs, by the range of each group of their elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32MaxOp, F32MinOp, QuantizeOp, RangeScaleOp, RangeZeroPointOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.operators.f32 import F32Builder
from qdialect.late_dataclass import dataclass
from qdialect.quant_math import FloatRounding

_LARGEST = 127.0
# arith.cmpf's number of "ordered and greater than".
_GREATER = 2


@dataclass(frozen=True)
class RunTimeQuantized:
    """i8 values, and the f32 scale and i8 zero point of each group of them."""

    values: ir.Value
    scale: ir.Value
    zero_point: ir.Value


def _to_integer(emitter: Emitter, value: ir.Value) -> ir.Value:
    """The nearest i8, ties away from zero; zero where there is no number."""
    how: dict[str, Any] = {"scales": (1.0,), "zero_points": (0,), "rounding": FloatRounding.HALF_AWAY}
    return emitter.build(QuantizeOp, value, element="i8", **how)


def _ends(emitter: Emitter, value: ir.Value, axes: tuple[int, ...]) -> tuple[ir.Value, ir.Value]:
    over = {"axes": axes, "keep_dims": True}
    minimum = emitter.build(F32MinOp, value, element="f32", **over)
    return minimum, emitter.build(F32MaxOp, value, element="f32", **over)


def asymmetric(emitter: Emitter, value: ir.Value, axes: tuple[int, ...]) -> RunTimeQuantized:
    """``half_away(zero_point + x * (1 / scale))`` in float32 (TFLite tensor_utils AsymmetricQuantizeFloats)."""
    ends = _ends(emitter, value, axes)
    scale = emitter.build(RangeScaleOp, *ends, element="f32")
    zero_point = emitter.build(RangeZeroPointOp, *ends, element="f32")
    s, small = F32Builder(emitter, shape_of(value.type)), F32Builder(emitter, shape_of(scale.type))
    scaled = s("mulf", value, small("divf", 1.0, scale))
    quantized = _to_integer(emitter, s("addf", zero_point, scaled))
    return RunTimeQuantized(quantized, scale, _to_integer(emitter, zero_point))


def symmetric(emitter: Emitter, value: ir.Value, axes: tuple[int, ...]) -> RunTimeQuantized:
    """``half_away(x * (127 / range))`` in float32, the range the largest magnitude (SymmetricQuantizeFloats)."""
    minimum, maximum = _ends(emitter, value, axes)
    s, small = F32Builder(emitter, shape_of(value.type)), F32Builder(emitter, shape_of(minimum.type))
    largest = small("maximumf", small("absf", minimum), small("absf", maximum))
    one = emitter.number(1.0, small.shape)
    is_positive = emitter.compare(_GREATER, largest, emitter.number(0.0, small.shape))
    scale = emitter.select(is_positive, small("divf", largest, _LARGEST), one)
    factor = emitter.select(is_positive, small("divf", _LARGEST, largest), one)
    bounded = s("minimumf", s("maximumf", s("mulf", value, factor), -_LARGEST), _LARGEST)
    zero_point = emitter.constant(np.broadcast_to(np.int8(0), shape_of(scale.type)))
    return RunTimeQuantized(_to_integer(emitter, bounded), scale, zero_point)
