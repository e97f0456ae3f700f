"""Float32 tensors quantized when the network runs, by the range of each group of their elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32MaxOp, F32MinOp, QuantizeOp, RangeScaleOp, RangeZeroPointOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.operators.f32 import F32Builder
from qdialect.quant_math import FloatRounding

_LARGEST = 127.0
_LOWEST, _HIGHEST = -128.0, 127.0
# arith.cmpf's numbers of "ordered and equal to", "ordered and greater than", "ordered and less than" and "ordered".
_EQUAL, _GREATER, _LESS, _ORDERED = 1, 2, 4, 7
# LiteRT rounds so many numbers at once, and one by one what is left of a group.
_AT_ONCE = 8
# What 32 bits do not hold, and above all that is quantized.
_TOO_LARGE, _BOUND = 2.0**31, 512.0
_HALF, _BELOW_HALF = np.float32(0.5), np.float32(0.5 - 2.0**-25)

Border = Sequence[tuple[int, int]]
"""Cells before and after each dimension that are no part of a group."""


@dataclass(frozen=True)
class RunTimeQuantized:
    """i8 values, and the f32 scale and i8 zero point of each group of them."""

    values: ir.Value
    scale: ir.Value
    zero_point: ir.Value


Quantizer = Callable[[Emitter, ir.Value, tuple[int, ...], Border], RunTimeQuantized]


def quantizer_of(emitter: Emitter, *, is_asymmetric: bool) -> Quantizer:
    """How float32 data of the products that XNNPACK's delegate takes are quantized; itself, it knows one way."""
    if emitter.is_delegated:
        return delegated
    return asymmetric if is_asymmetric else symmetric


def _to_integer(emitter: Emitter, value: ir.Value) -> ir.Value:
    """Whole numbers as i8."""
    how: dict[str, Any] = {"scales": (1.0,), "zero_points": (0,), "rounding": FloatRounding.HALF_EVEN}
    return emitter.build(QuantizeOp, value, element="i8", **how)


def _ends(emitter: Emitter, value: ir.Value, axes: tuple[int, ...]) -> tuple[ir.Value, ir.Value]:
    """Smallest and largest of the numbers and zero."""
    over = {"axes": axes, "keep_dims": True, "from_zero": True, "nan_as_zero": True}
    minimum = emitter.build(F32MinOp, value, element="f32", **over)
    return minimum, emitter.build(F32MaxOp, value, element="f32", **over)


def _rounded(emitter: Emitter, value: ir.Value, axes: tuple[int, ...], border: Border, otherwise: ir.Value) -> ir.Value:
    """``trunc(x + copysign(h, x))`` (TFLite tensor_utils with vectors of SSE), `otherwise` for NaN and minus infinity.

    What is rounded at once has h = 1/2, so that the number before 1/2 goes to 1; the others are rounded half away from
    zero, for which h is the number before 1/2.
    """
    s = F32Builder(emitter, shape_of(value.type))
    pairs = [*border, *[(0, 0)] * (len(s.shape) - len(border))]
    group = [s.shape[axis] - sum(pairs[axis]) if axis in axes else 1 for axis in range(len(s.shape))]
    count = math.prod(group)
    halves: ir.Value | float = float(_HALF)
    if count % _AT_ONCE:
        each = np.full(count, _HALF)
        each[count - count % _AT_ONCE :] = _BELOW_HALF
        inside = [pair if axis in axes else (0, 0) for axis, pair in enumerate(pairs)]
        halves = emitter.constant(np.pad(each.reshape(group), inside))
    rounded = s("trunc", s("addf", value, s("copysign", halves, value)))
    is_held = emitter.compare(_GREATER, value, emitter.number(-_TOO_LARGE, s.shape))
    return emitter.select(is_held, rounded, emitter.broadcast(otherwise, s.shape))


def asymmetric(emitter: Emitter, value: ir.Value, axes: tuple[int, ...], border: Border = ()) -> RunTimeQuantized:
    """``round(x * (1 / scale)) + zero_point`` in float32 (TFLite tensor_utils AsymmetricQuantizeFloats)."""
    ends = _ends(emitter, value, axes)
    scale = emitter.build(RangeScaleOp, *ends, element="f32")
    zero_point = emitter.build(RangeZeroPointOp, *ends, element="f32")
    s, small = F32Builder(emitter, shape_of(value.type)), F32Builder(emitter, shape_of(scale.type))
    zero = emitter.number(0.0, small.shape)
    zero_point = emitter.select(emitter.compare(_ORDERED, zero_point, zero_point), zero_point, zero)
    # Conversions of these give -2^31, and its sum with a negative zero point wraps around.
    is_negative = emitter.compare(_LESS, zero_point, zero)
    otherwise = emitter.select(
        is_negative, emitter.number(_TOO_LARGE, small.shape), emitter.number(-_TOO_LARGE, small.shape)
    )
    scaled = s("mulf", value, small("divf", 1.0, scale))
    rounded = _rounded(emitter, scaled, axes, border, otherwise)
    quantized = _to_integer(emitter, s("addf", rounded, zero_point))
    return RunTimeQuantized(quantized, scale, _to_integer(emitter, zero_point))


def symmetric(emitter: Emitter, value: ir.Value, axes: tuple[int, ...], border: Border = ()) -> RunTimeQuantized:
    """``round(x * (127 / range))`` in float32, the range the largest magnitude (SymmetricQuantizeFloats)."""
    minimum, maximum = _ends(emitter, value, axes)
    s, small = F32Builder(emitter, shape_of(value.type)), F32Builder(emitter, shape_of(minimum.type))
    largest = small("maximumf", small("absf", minimum), maximum)
    one = emitter.number(1.0, small.shape)
    is_positive = emitter.compare(_GREATER, largest, emitter.number(0.0, small.shape))
    scale = emitter.select(is_positive, small("divf", largest, _LARGEST), one)
    factor = emitter.select(is_positive, small("divf", _LARGEST, largest), one)
    otherwise = emitter.number(-_TOO_LARGE, small.shape)
    rounded = _rounded(emitter, s("mulf", value, factor), axes, border, otherwise)
    bounded = s("minimumf", s("maximumf", rounded, -_LARGEST), _LARGEST)
    zero_point = emitter.constant(np.broadcast_to(np.int8(0), shape_of(scale.type)))
    return RunTimeQuantized(_to_integer(emitter, bounded), scale, zero_point)


def delegated(emitter: Emitter, value: ir.Value, axes: tuple[int, ...], border: Border = ()) -> RunTimeQuantized:
    """``half_even(x * f) + zero_point`` with ``f = 255 / (max - min)``, the scale 1 / f (XNNPACK's qd8 parameters).

    The zero point is computed from the end of the range whose error is smaller, every step rounded to float32.
    """
    del border
    low, high = _ends(emitter, value, axes)
    s, small = F32Builder(emitter, shape_of(value.type)), F32Builder(emitter, shape_of(low.type))
    is_empty = emitter.compare(_EQUAL, low, high)
    factor = emitter.select(is_empty, emitter.number(1.0, small.shape), small("divf", 255.0, small("subf", high, low)))
    below, above = small("mulf", low, factor), small("mulf", high, factor)
    error = small("addf", small("addf", below, _LOWEST), small("addf", above, _HIGHEST))
    is_from_below = emitter.compare(_GREATER, error, emitter.number(0.0, small.shape))
    exact = emitter.select(is_from_below, small("subf", _LOWEST, below), small("subf", _HIGHEST, above))
    lowest = emitter.number(_LOWEST, small.shape)
    exact = emitter.select(emitter.compare(_GREATER, exact, lowest), exact, lowest)
    zero_point = small("roundeven", small("minimumf", exact, _HIGHEST))
    scaled, bound = s("mulf", value, factor), emitter.number(_BOUND, s.shape)
    # What is no number is the largest, and an end of the range for which there is none the lowest.
    rounded = s("roundeven", emitter.select(emitter.compare(_LESS, scaled, bound), scaled, bound))
    quantized = _to_integer(emitter, s("addf", rounded, zero_point))
    return RunTimeQuantized(quantized, small("divf", 1.0, factor), _to_integer(emitter, zero_point))
