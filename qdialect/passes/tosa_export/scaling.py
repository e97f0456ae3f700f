"""Writes requantization and division by scales in TOSA's integers and floats, for every rounding mode."""

from __future__ import annotations

import numpy as np

from qdialect.arithmetic import FloatRounding, Rounding, multipliers, round_f32
from qdialect.dialect.type_constraints import ELEMENT_RANGES, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa_export import builder
from qdialect.passes.tosa_export.export import require

# Requantization in TOSA's integers and floats, for every rounding mode.
#
# `fixed64_up` and `fixed64_double` are RESCALE with SINGLE_ROUND and DOUBLE_ROUND, within what RESCALE takes.
# `fixed64_nearest`, ties away from zero, is RESCALE of the magnitude.  `fixed32_double` is MUL with a shift by 31,
# which is gemmlowp's doubling high multiplication for a multiplier that is not negative, and an arithmetic shift that
# rounds ties up: a negative number less one has its ties go away from zero and nothing else changed.  Float multipliers
# are MUL on f32; CAST rounds to even.

IDENTITY = (1 << 30, 30)
"""Multiplier and shift of RESCALE that change nothing but zero point and type."""
_SHORTEST, _LONGEST = 2, 62
_MULTIPLIER_BITS = 31
_FLOAT_INTEGER_BITS = 24


def pairs_of(params: multipliers.FixedMultiplier) -> list[tuple[int, int]]:
    """(multiplier, shift) of RESCALE for each channel."""
    found = zip(params.q.tolist(), params.e.tolist(), strict=True)
    return [(q, _MULTIPLIER_BITS - e) if q else (0, _LONGEST) for q, e in found]


def takes(params: multipliers.RequantizeParameters, rounding: Rounding, bound: int) -> bool:
    """Whether RESCALE multiplies values up to the magnitude `bound` so."""
    if not isinstance(params, multipliers.FixedMultiplier) or rounding not in (
        Rounding.FIXED64_UP,
        Rounding.FIXED64_DOUBLE,
    ):
        return False
    return all(_is_in_range(q, shift, bound) for q, shift in pairs_of(params))


def _is_in_range(q: int, shift: int, bound: int) -> bool:
    fits = _SHORTEST <= shift <= _LONGEST and bound < 1 << (shift - 1)
    # The result with a zero point has 32 bits.
    return fits and (bound * q >> shift) < (1 << 31) - (1 << 17)


def multiplied(value: ir.Value, params: multipliers.FixedMultiplier, rounding: Rounding, bound: int) -> ir.Value:
    """i32 values of at most `bound` times the multipliers of the last dimension, rounded, as i32."""
    if rounding is Rounding.FIXED32_DOUBLE:
        return _multiplied_high(value, params, bound)
    if rounding is Rounding.FIXED64_NEAREST:
        return _multiplied_away(value, params, bound)
    _require_range(params, bound)
    return builder.rescale(value, "i32", pairs_of(params), rounds_twice=rounding is Rounding.FIXED64_DOUBLE)


def _multiplied_away(value: ir.Value, params: multipliers.FixedMultiplier, bound: int) -> ir.Value:
    """By magnitudes, which are multiplied with ties up; -2^31 is without one."""
    _require_range(params, bound)
    magnitude = builder.rescale(builder.apply("abs", value), "i32", pairs_of(params))
    found = builder.select(
        builder.apply("greater", builder.filled(0, value), value), builder.apply("negate", magnitude), magnitude
    )
    if bound <= multipliers.INT32_MAX:
        return found
    last = multipliers.multiply_by_quantized_multiplier(
        multipliers.INT32_MIN, params.q, params.e, Rounding.FIXED64_NEAREST
    )
    return builder.select(builder.apply("equal", value, multipliers.INT32_MIN), builder.filled(last, found), found)


def _require_range(params: multipliers.FixedMultiplier, bound: int) -> None:
    for q, shift in pairs_of(params):
        wanted = f"scales must give a multiplier that RESCALE takes for values up to {bound}"
        require(_is_in_range(q, shift, bound), f"{wanted}, but got {q} * 2^-{shift}")


def _multiplied_high(value: ir.Value, params: multipliers.FixedMultiplier, bound: int) -> ir.Value:
    exponents = params.e.astype(np.int64)
    left, right = np.maximum(exponents, 0), np.maximum(-exponents, 0)
    if left.any():
        fits = bound << int(left.max()) <= multipliers.INT32_MAX
        wanted = f"scales must give a shift to the left that {bound} takes in 32 bits"
        require(fits, f"{wanted}, but got one by {left.max()}")
        value = builder.apply("mul", value, np.left_shift(1, left))
    high = builder.multiplied_high(value, params.q, _MULTIPLIER_BITS)
    if not right.any():
        return high
    # -1 for negative numbers that are shifted.
    down = builder.apply(
        "bitwise_and", builder.shift_right(high, _MULTIPLIER_BITS, rounds=False), np.where(right > 0, -1, 0)
    )
    return builder.shift_right(builder.apply("add", high, down), right, rounds=True)


def requantized(
    value: ir.Value,
    params: multipliers.RequantizeParameters,
    rounding: Rounding,
    bound: int,
    zero_point: int,
    bounds: tuple[int, int],
) -> ir.Value:
    """i32 values times M, plus the zero point, within `bounds`, as i32; channels are those of the last dimension."""
    if isinstance(params, multipliers.FixedMultiplier):
        return builder.clamp(builder.apply("add", multiplied(value, params, rounding, bound), zero_point), *bounds)
    return rounded_floats(builder.apply("mul", builder.cast(value, "f32"), params.m), zero_point, bounds, rounding)


def requantized_bytes(
    value: ir.Value,
    params: multipliers.RequantizeParameters,
    rounding: Rounding,
    bound: int,
    zero_point: int,
    bounds: tuple[int, int],
    element: str,
) -> ir.Value:
    """`requantized` as bytes of the element type, as they are held; by one RESCALE where that is possible."""
    if not isinstance(params, multipliers.FixedMultiplier) or not takes(params, rounding, bound):
        return held(requantized(value, params, rounding, bound, zero_point, bounds), element)
    sign = 128 if element == "ui8" else 0
    twice = rounding is Rounding.FIXED64_DOUBLE
    found = builder.rescale(value, "i8", pairs_of(params), (0, zero_point - sign), rounds_twice=twice)
    return found if bounds == ELEMENT_RANGES[element] else builder.clamp(found, *(bound - sign for bound in bounds))


def multiplier_of(m: float) -> multipliers.FixedMultiplier:
    """One real multiplier as a fixed-point one."""
    return multipliers.quantized_multipliers(np.array([m]))


def rounded_floats(value: ir.Value, zero_point: int, bounds: tuple[int, int], rounding: Rounding) -> ir.Value:
    """f32 values rounded in a float rounding mode, with the zero point, within `bounds`, as i32."""
    limits = [*bounds, *(bound - zero_point for bound in bounds)]
    is_exact = max(map(abs, limits)) <= 1 << _FLOAT_INTEGER_BITS
    require(is_exact, f"rounding must be a fixed-point mode for results in {list(bounds)}, but got {rounding}")
    if rounding is Rounding.F32_RNE_ZP_LAST:
        near = builder.clamp(value, bounds[0] - zero_point, bounds[1] - zero_point)
        return builder.apply("add", builder.cast(near, "i32"), zero_point)
    moved = builder.apply("add", value, zero_point)
    if rounding is Rounding.F32_UP_ZP_FIRST:
        moved = builder.apply("floor", builder.apply("add", moved, 0.5))
    if rounding is Rounding.F32_NEAREST_ZP_FIRST:
        moved = half_away(moved)
    return builder.cast(builder.clamp(moved, *bounds), "i32")


def half_away(value: ir.Value) -> ir.Value:
    """f32 values rounded to integers, ties away from zero."""
    is_negative = builder.apply("greater", builder.filled(0, value), value)
    whole = builder.select(is_negative, builder.apply("ceil", value), builder.apply("floor", value))
    rest = builder.apply("abs", builder.apply("sub", value, whole))
    beyond = builder.apply(
        "add", whole, builder.select(is_negative, builder.filled(-1, value), builder.filled(1, value))
    )
    return builder.select(builder.apply("greater_equal", rest, 0.5), beyond, whole)


def centered(value: ir.Value, zero_points: builder.Array) -> ir.Value:
    """Integers, as they are held, less their zero points along the last dimension, as i32."""
    wide = builder.cast(value, "i32")
    return builder.apply("sub", wide, zero_points) if zero_points.any() else wide


def held(value: ir.Value, element: str) -> ir.Value:
    """i32 values within the range of an element type, as they are held."""
    if element == "ui8":
        return builder.cast(builder.apply("sub", value, 128), "i8")
    return builder.cast(value, element)


# Quantized values of f32 values over a scale.
#
# A quotient by a power of two is a product.  Another, which TOSA lacks, is not: there the product with the reciprocal
# gives the quantized value or its neighbour, and the least f32 value of either, which a table knows, decides.

_BITS = 32
_INFINITY_BITS = 0x7F800000


def is_power_of_two(scale: float) -> bool:
    """Whether a product with the reciprocal of the float32 `scale` is the quotient."""
    return bool(np.frexp(np.float32(scale))[0] == 0.5)


def rounded(value: ir.Value, rounding: FloatRounding) -> ir.Value:
    """f32 values rounded to integers, but for ties to even, which a cast rounds so."""
    if rounding is FloatRounding.HALF_UP:
        return builder.apply("floor", builder.apply("add", value, 0.5))
    return half_away(value) if rounding is FloatRounding.HALF_AWAY else value


def quotient(
    value: ir.Value, scale: float, zero_point: int, bounds: tuple[int, int], rounding: FloatRounding
) -> ir.Value:
    """``clamp(round(value / scale) + zero_point)`` within `bounds` of f32 values that are no NaN, as i32."""
    low, high = (bound - zero_point for bound in bounds)
    reciprocal = float(np.float32(1) / np.float32(scale))
    product = builder.apply("mul", value, reciprocal)
    if is_power_of_two(scale):
        near = builder.cast(builder.clamp(rounded(product, rounding), low, high), "i32")
        return builder.apply("add", near, zero_point) if zero_point else near
    near = builder.cast(builder.clamp(product, low, high), "i32")
    table = np.array([-np.inf, *_thresholds(np.float32(scale), low, high, rounding), np.inf], np.float32)
    position = builder.apply("add", near, -low)
    is_below = builder.apply("greater", _taken(table[:-1], position), value)
    is_above = builder.apply("greater_equal", value, _taken(table[1:], position))
    moved = builder.apply(
        "sub", builder.apply("add", near, builder.cast(is_above, "i32")), builder.cast(is_below, "i32")
    )
    return builder.clamp(builder.apply("add", moved, zero_point), *bounds)


def _taken(table: builder.Array, positions: ir.Value) -> ir.Value:
    shape = shape_of(positions.type)
    count = int(np.prod(shape))
    rows = [builder.const(table.reshape(1, -1, 1)), builder.reshape(positions, (1, count))]
    return builder.reshape(builder.create("gather", rows, (1, count, 1), "f32"), shape)


def _thresholds(scale: np.float32, low: int, high: int, rounding: FloatRounding) -> builder.Array:
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


def _floats(keys: builder.Array) -> builder.Array:
    magnitudes = np.abs(keys).astype(np.uint32).view(np.float32)
    return np.where(keys < 0, -magnitudes, magnitudes)
