"""Writes requantization and division by scales in TOSA's integers and floats, for every rounding mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from qdialect.arithmetic import FixedMultiplier, FloatRounding, RequantizeParameters, Rounding, multipliers, round_f32
from qdialect.dialect.type_constraints import ELEMENT_RANGES, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa_export import builder
from qdialect.passes.tosa_export.builder import apply, cast, clamp, filled, rescale, select, shift_right
from qdialect.passes.tosa_export.export import require

# `fixed64_up` and `fixed64_double` are RESCALE with SINGLE_ROUND and DOUBLE_ROUND, within what RESCALE takes.
# `fixed64_nearest`, ties away from zero, is RESCALE of the magnitude.  `fixed32_double` is MUL with a shift by 31,
# which is gemmlowp's doubling high multiplication for a multiplier that is not negative, and an arithmetic shift that
# rounds ties up: a negative number less one has its ties go away from zero and nothing else changed.  Float multipliers
# are MUL on f32; CAST rounds to even.

_SHORTEST, _LONGEST = 2, 62
_MULTIPLIER_BITS = 31
_FLOAT_INTEGER_BITS = 24


def pairs_of(params: FixedMultiplier) -> list[tuple[int, int]]:
    """(multiplier, shift) of RESCALE for each channel."""
    found = zip(params.q.tolist(), params.e.tolist(), strict=True)
    return [(q, _MULTIPLIER_BITS - e) if q else (0, _LONGEST) for q, e in found]


def takes(params: RequantizeParameters, rounding: Rounding, bound: int) -> TypeGuard[FixedMultiplier]:
    """Whether RESCALE multiplies values up to the magnitude `bound` so."""
    if not isinstance(params, FixedMultiplier) or rounding not in (Rounding.FIXED64_UP, Rounding.FIXED64_DOUBLE):
        return False
    return all(_is_in_range(q, shift, bound) for q, shift in pairs_of(params))


def _is_in_range(q: int, shift: int, bound: int) -> bool:
    fits = _SHORTEST <= shift <= _LONGEST and bound < 1 << (shift - 1)
    # The result with a zero point has 32 bits.
    return fits and (bound * q >> shift) < (1 << 31) - (1 << 17)


def multiplied(value: ir.Value, params: FixedMultiplier, rounding: Rounding, bound: int) -> ir.Value:
    """i32 values of at most `bound` times the multipliers of the last dimension, rounded, as i32."""
    if rounding is Rounding.FIXED32_DOUBLE:
        return _multiplied_high(value, params, bound)
    if rounding is Rounding.FIXED64_NEAREST:
        return _multiplied_away(value, params, bound)
    _require_range(params, bound)
    return rescale(value, "i32", pairs_of(params), rounds_twice=rounding is Rounding.FIXED64_DOUBLE)


def _multiplied_away(value: ir.Value, params: FixedMultiplier, bound: int) -> ir.Value:
    """By magnitudes, which are multiplied with ties up; -2^31 is without one."""
    _require_range(params, bound)
    magnitude = rescale(apply("abs", value), "i32", pairs_of(params))
    found = select(apply("greater", filled(0, value), value), apply("negate", magnitude), magnitude)
    if bound <= multipliers.INT32_MAX:
        return found
    last = multipliers.multiply_by_quantized_multiplier(
        multipliers.INT32_MIN, params.q, params.e, Rounding.FIXED64_NEAREST
    )
    return select(apply("equal", value, multipliers.INT32_MIN), filled(last, found), found)


def _require_range(params: FixedMultiplier, bound: int) -> None:
    for q, shift in pairs_of(params):
        wanted = f"scales must give a multiplier that RESCALE takes for values up to {bound}"
        require(_is_in_range(q, shift, bound), f"{wanted}, but got {q} * 2^-{shift}")


def _multiplied_high(value: ir.Value, params: FixedMultiplier, bound: int) -> ir.Value:
    exponents = params.e.astype(np.int64)
    left, right = np.maximum(exponents, 0), np.maximum(-exponents, 0)
    if left.any():
        fits = bound << int(left.max()) <= multipliers.INT32_MAX
        wanted = f"scales must give a shift to the left that {bound} takes in 32 bits"
        require(fits, f"{wanted}, but got one by {left.max()}")
        value = apply("mul", value, np.left_shift(1, left))
    operands = [value, filled(params.q, value), builder.entry(_MULTIPLIER_BITS, "i8")]
    high = builder.create("mul", operands, shape_of(value.type), "i32")
    if not right.any():
        return high
    # -1 for negative numbers that are shifted.
    down = apply("bitwise_and", shift_right(high, _MULTIPLIER_BITS, rounds=False), np.where(right > 0, -1, 0))
    return shift_right(apply("add", high, down), right, rounds=True)


@dataclass(frozen=True)
class Requantization:
    """Of i32 values up to the magnitude `bound`: times M, plus the zero point, within `bounds`."""

    params: RequantizeParameters
    rounding: Rounding
    bound: int
    zero_point: int
    bounds: tuple[int, int]

    def of(self, value: ir.Value) -> ir.Value:
        """The result for `value` as i32; channels are those of the last dimension."""
        if isinstance(self.params, FixedMultiplier):
            product = multiplied(value, self.params, self.rounding, self.bound)
            return clamp(apply("add", product, self.zero_point), *self.bounds)
        product = apply("mul", cast(value, "f32"), self.params.m)
        return rounded_floats(product, self.zero_point, self.bounds, self.rounding)

    def bytes_of(self, value: ir.Value, element: str) -> ir.Value:
        """The result as bytes of the element type, as they are held; by one RESCALE where that is possible."""
        if not takes(self.params, self.rounding, self.bound):
            return held(self.of(value), element)
        sign, twice = 128 if element == "ui8" else 0, self.rounding is Rounding.FIXED64_DOUBLE
        found = rescale(value, "i8", pairs_of(self.params), (0, self.zero_point - sign), rounds_twice=twice)
        is_whole = self.bounds == ELEMENT_RANGES[element]
        return found if is_whole else clamp(found, *(bound - sign for bound in self.bounds))


def multiplier_of(m: float) -> FixedMultiplier:
    """One real multiplier as a fixed-point one."""
    return multipliers.quantized_multipliers(np.array([m]))


def rounded_floats(value: ir.Value, zero_point: int, bounds: tuple[int, int], rounding: Rounding) -> ir.Value:
    """f32 values rounded in a float rounding mode, with the zero point, within `bounds`, as i32."""
    limits = [*bounds, *(bound - zero_point for bound in bounds)]
    is_exact = max(map(abs, limits)) <= 1 << _FLOAT_INTEGER_BITS
    require(is_exact, f"rounding must be a fixed-point mode for results in {list(bounds)}, but got {rounding}")
    if rounding is Rounding.F32_RNE_ZP_LAST:
        near = clamp(value, bounds[0] - zero_point, bounds[1] - zero_point)
        return apply("add", cast(near, "i32"), zero_point)
    moved = apply("add", value, zero_point)
    if rounding is Rounding.F32_UP_ZP_FIRST:
        moved = apply("floor", apply("add", moved, 0.5))
    if rounding is Rounding.F32_NEAREST_ZP_FIRST:
        moved = half_away(moved)
    return cast(clamp(moved, *bounds), "i32")


def half_away(value: ir.Value) -> ir.Value:
    """f32 values rounded to integers, ties away from zero."""
    is_negative = apply("greater", filled(0, value), value)
    whole = select(is_negative, apply("ceil", value), apply("floor", value))
    rest = apply("abs", apply("sub", value, whole))
    beyond = apply("add", whole, select(is_negative, filled(-1, value), filled(1, value)))
    return select(apply("greater_equal", rest, 0.5), beyond, whole)


def centered(value: ir.Value, zero_points: builder.Array) -> ir.Value:
    """Integers, as they are held, less their zero points along the last dimension, as i32."""
    wide = cast(value, "i32")
    return apply("sub", wide, zero_points) if zero_points.any() else wide


def held(value: ir.Value, element: str) -> ir.Value:
    """i32 values within the range of an element type, as they are held."""
    if element == "ui8":
        return cast(apply("sub", value, 128), "i8")
    return cast(value, element)


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
