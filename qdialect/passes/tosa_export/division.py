"""Quantized values of f32 values over a scale.

A quotient by a power of two is a product.  Another, which TOSA lacks, is not: there the product with the reciprocal
gives the quantized value or its neighbour, and the least f32 value of either, which a table knows, decides.
"""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import shape_of
from qdialect.passes.tosa_export.builder import Array, apply, cast, clamp, const, create, reshape
from qdialect.passes.tosa_export.scaling import half_away
from qdialect.quant_math import FloatRounding, round_f32

_BITS = 32
_INFINITY_BITS = 0x7F800000


def is_power_of_two(scale: float) -> bool:
    """Whether a product with the reciprocal of the float32 `scale` is the quotient."""
    return bool(np.frexp(np.float32(scale))[0] == 0.5)


def rounded(value: ir.Value, rounding: FloatRounding) -> ir.Value:
    """f32 values rounded to integers, but for ties to even, which a cast rounds so."""
    if rounding is FloatRounding.HALF_UP:
        return apply("floor", apply("add", value, 0.5))
    return half_away(value) if rounding is FloatRounding.HALF_AWAY else value


def quotient(
    value: ir.Value, scale: float, zero_point: int, bounds: tuple[int, int], rounding: FloatRounding
) -> ir.Value:
    """``clamp(round(value / scale) + zero_point)`` within `bounds` of f32 values that are no NaN, as i32."""
    low, high = (bound - zero_point for bound in bounds)
    reciprocal = float(np.float32(1) / np.float32(scale))
    product = apply("mul", value, reciprocal)
    if is_power_of_two(scale):
        near = cast(clamp(rounded(product, rounding), low, high), "i32")
        return apply("add", near, zero_point) if zero_point else near
    near = cast(clamp(product, low, high), "i32")
    table = np.array([-np.inf, *_thresholds(np.float32(scale), low, high, rounding), np.inf], np.float32)
    position = apply("add", near, -low)
    is_below = apply("greater", _taken(table[:-1], position), value)
    is_above = apply("greater_equal", value, _taken(table[1:], position))
    moved = apply("sub", apply("add", near, cast(is_above, "i32")), cast(is_below, "i32"))
    return clamp(apply("add", moved, zero_point), *bounds)


def _taken(table: Array, positions: ir.Value) -> ir.Value:
    shape = shape_of(positions.type)
    count = int(np.prod(shape))
    rows = [const(table.reshape(1, -1, 1)), reshape(positions, (1, count))]
    return reshape(create("gather", rows, (1, count, 1), "f32"), shape)


def _thresholds(scale: np.float32, low: int, high: int, rounding: FloatRounding) -> Array:
    """The least f32 value whose rounded quotient is q, for q in low + 1..high; by bisection over all of them."""
    wanted = np.arange(low + 1, high + 1)
    # Floats are ordered as the integers of their bits, negative ones the other way round.
    first, last = np.full(wanted.shape, -_INFINITY_BITS), np.full(wanted.shape, _INFINITY_BITS)
    for _ in range(_BITS):
        middle = (first + last) >> 1
        with np.errstate(over="ignore"):
            holds = round_f32(_floats(middle) / scale, rounding) >= wanted
        first, last = np.where(holds, first, middle + 1), np.where(holds, middle, last)
    return _floats(last)


def _floats(keys: Array) -> Array:
    magnitudes = np.abs(keys).astype(np.uint32).view(np.float32)
    return np.where(keys < 0, -magnitudes, magnitudes)
