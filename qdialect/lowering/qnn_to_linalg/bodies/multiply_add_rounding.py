"""Requantization by one fused multiply-add of float32 numbers, proved equal to the op's own arithmetic.

As in `fixed_point_multiplier`, only the thresholds of a requantization matter: t_v is the least accumulator that
becomes the quantized value v or more.  With the zero point z, a multiplier m, a constant c in (0, 1) and an integer d,

  g(x) = z + trunc(fma(x + d, m, +-c)),      the sign of c that of x + d,

is monotonic, so that the clamped g is the requantization if and only if it has its thresholds.  Rounding away from
zero, twice or once, moves the thresholds on both sides of the zero point away from each other; so does c, which is a
half and what the first rounding adds to it, at no cost but an `and` and an `or`, one instruction with AVX-512.

The sum is rounded to the nearest float32 number, so that it reaches a whole number a if and only if the exact sum
reaches e(a), which is half a unit of the last place below a; a tie goes up to a, whose last bit is even.  With
v' = v - z a threshold t of a v above z asks for

  (t + d) m + c >= e(v')      and      (t - 1 + d) m + c < e(v'),

and one of a v up to z, where g must be v - 1 or less before t, so that its magnitude reaches 1 - v',

  -(t - 1 + d) m + c >= e(1 - v')      and      -(t + d) m + c < e(1 - v').

Each side leaves a window for c, and d moves the two by m in opposite directions: it brings their middles together.  c
is less than e(1), so that no accumulator that counts has the other side's sign.  The window is about m / 128 wide, and
that of m about 2^-22 of m.  A few float32 numbers around the multiplier are tried, nearly always with success.

Everything is exact: thresholds of 24 bits, which the conversion keeps, have products of 48 bits with m.  Float64
numbers hold these, and the sums to within 2^-44, which the windows are narrowed by.  Accumulators beyond 24 bits are
rounded, monotonically.  No number comes near to subnormal ones.

Where all quantized values are above the zero point, what is below it does not matter, and c has one sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import IntArray, Thresholds
from qdialect.lowering.qnn_to_linalg.program.operands import Parameter
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, EmitRequantize, Value

F64Array = NDArray[np.float64]

_EXACT = 2.0**24
"""Magnitudes up to which float32 holds every integer."""
_LARGEST_OFFSET = 2.0**16
_LARGEST = 2.0**30
"""Of what becomes an integer of 32 bits."""
_SMALLEST_MULTIPLIER = 2.0**-40
_LARGEST_QUANTIZED = 1024
MARGIN = 2.0**-40
"""More than the error of a sum in float64, and less than half a unit of the last place of c."""
SMALLEST_REST, LARGEST_REST = 2.0**-12, 1 - 2.0**-12
"""Between which c is, so that it has no effect on the sign of a sum and reaches no whole number by itself."""
_STEPS = (0, *(sign * step for step in range(1, 17) for sign in (1, -1)))
"""Units of the last place by which multipliers differ from the nearest one."""
_SIGN = -(2**31)


@dataclass(frozen=True)
class MultiplyAddRounding:
    """``zero_point + trunc(fma(acc + offset, multiplier, +-rest))`` by channel; quantized values are not clamped."""

    offset: NDArray[np.int32]
    parameters: tuple[Parameter, ...]
    """Multiplier and rest, whose bits are read as an integer where it gets a sign."""
    zero_point: int
    """Of the quantized values with their shift."""

    def declare(self, kernel: Kernel) -> EmitRequantize:
        """The zero point is a number of the tensor."""
        zero_point = declare_zero_point(kernel, self.zero_point)

        def emit(body: Body, acc: Value, parameters: Sequence[Value]) -> Value:
            multiplier, rest = parameters
            own = rest if rest.is_float else with_sign(body, rest, acc)
            return multiply_add(body, acc, multiplier, own, zero_point)

        return emit


def declare_zero_point(kernel: Kernel, zero_point: int) -> Value | None:
    """A number of the tensor; None for 0."""
    return kernel.number("zero_point", zero_point, "i32") if zero_point else None


def with_sign(body: Body, bits: Value, sign: Value) -> Value:
    """The float32 number of `bits`, which is positive, with the sign of an integer."""
    own = body.binary("arith.andi", sign, body.constant(_SIGN, "i32"))
    return body.cast("arith.bitcast", body.binary("arith.ori", own, bits), "f32")


def multiply_add(body: Body, integer: Value, multiplier: Value, rest: Value, zero_point: Value | None) -> Value:
    """``zero_point + trunc(fma(integer, multiplier, rest))``."""
    total = body.multiply_add(body.cast("arith.sitofp", integer, "f32"), multiplier, rest)
    value = body.cast("arith.fptosi", total, "i32")
    return value if zero_point is None else body.add(value, zero_point)


def multiply_add_rounding(steps: Thresholds, near: F64Array, zero_point: int) -> MultiplyAddRounding | None:
    """The multiply-adds with the thresholds `steps`, near to the multipliers `near`, if every channel has one.

    `zero_point` is that of the quantized values of `steps`, with their shift.
    """
    multiplier = near.astype(np.float32)
    reach = np.maximum(np.abs(steps.low), np.abs(steps.high)).astype(np.float64) + _LARGEST_OFFSET
    is_out = (multiplier < _SMALLEST_MULTIPLIER) | (reach * multiplier >= _LARGEST) | (reach >= 2.0**31)
    if is_out.any() or np.abs(steps.values - zero_point).max(initial=0) > _LARGEST_QUANTIZED:
        return None
    sides = _sides(steps, zero_point)
    if not sides.are_exact:
        return None
    offset, rest = (np.zeros(len(near)) for _ in range(2))
    left = np.arange(len(near))
    for step in _STEPS:
        own = sides if len(left) == len(near) else sides.of(left)
        tried = (near[left].astype(np.float32).view(np.int32) + np.int32(step)).view(np.float32)
        moved, between, fits = own.fitted(tried.astype(np.float64))
        found = left[fits]
        multiplier[found], offset[found], rest[found] = tried[fits], moved[fits], between[fits]
        left = left[~fits]
        if not len(left):
            return _form(multiplier, offset, rest.astype(np.float32), zero_point, is_signed=sides.has_below)
    return None


def _form(
    multiplier: NDArray[np.float32], offset: F64Array, rest: NDArray[np.float32], zero_point: int, *, is_signed: bool
) -> MultiplyAddRounding:
    own = Parameter("rest", "i32", rest.view(np.int32)) if is_signed else Parameter("f32_rest", "f32", rest)
    parameters = (Parameter("multiplier", "f32", multiplier), own)
    return MultiplyAddRounding(offset.astype(np.int32), parameters, zero_point)


@dataclass(frozen=True)
class _Side:
    """Thresholds on one side of the zero point, [quantized values, C], as magnitudes: accumulators away from zero.

    ``inner`` is the largest one whose sum stays below ``edge``, ``outer`` the least one that reaches it; infinite where
    that accumulator does not occur.
    """

    edge: F64Array
    inner: F64Array
    outer: F64Array

    def window(self, multiplier: F64Array) -> tuple[F64Array, F64Array]:
        """From where on and below what c may be for each channel; infinite where nothing bounds it."""
        low = (self.edge - self.outer * multiplier).max(axis=0, initial=-np.inf)
        high = (self.edge - self.inner * multiplier).min(axis=0, initial=np.inf)
        return low + MARGIN, high - MARGIN

    def of(self, channels: NDArray[np.intp]) -> _Side:
        return _Side(self.edge, self.inner[:, channels], self.outer[:, channels])

    @property
    def is_exact(self) -> bool:
        largest = max(np.abs(one).max(initial=0, where=np.isfinite(one)) for one in (self.inner, self.outer))
        return bool(largest <= _EXACT - _LARGEST_OFFSET)


@dataclass(frozen=True)
class _Sides:
    above: _Side
    below: _Side

    @property
    def has_below(self) -> bool:
        """Whether there are quantized values below the zero point."""
        return bool(len(self.below.edge))

    @property
    def are_exact(self) -> bool:
        return self.above.is_exact and self.below.is_exact

    def of(self, channels: NDArray[np.intp]) -> _Sides:
        return _Sides(self.above.of(channels), self.below.of(channels))

    def fitted(self, multiplier: F64Array) -> tuple[F64Array, F64Array, NDArray[np.bool_]]:
        """d and c for each channel, and whether they are exact."""
        low, high = _closed(*self.above.window(multiplier), multiplier)
        low_below, high_below = _closed(*self.below.window(multiplier), multiplier)
        apart = (low + high - low_below - high_below) / (4 * multiplier)
        offset = np.rint(np.clip(apart, -_LARGEST_OFFSET, _LARGEST_OFFSET)) if self.has_below else np.zeros_like(low)
        moved = offset * multiplier
        least = np.maximum.reduce([low - moved, low_below + moved, np.full_like(low, SMALLEST_REST)])
        most = np.minimum.reduce([high - moved, high_below + moved, np.full_like(low, LARGEST_REST)])
        rest = ((least + most) / 2).astype(np.float32)
        return offset, rest.astype(np.float64), (rest >= least) & (rest < most)


def _closed(low: F64Array, high: F64Array, multiplier: F64Array) -> tuple[F64Array, F64Array]:
    """A window with two ends: as wide as an accumulator where one of them is open, around a half where both are."""
    low, high = np.where(np.isinf(low) & np.isinf(high), 0.5, low), np.where(np.isinf(high), low + multiplier, high)
    return np.where(np.isinf(low), high - multiplier, low), np.where(np.isinf(high), low + multiplier, high)


def _sides(steps: Thresholds, zero_point: int) -> _Sides:
    """The thresholds by side; one that no accumulator reaches, or that all do, has one of its two accumulators."""
    first = steps.first.astype(np.float64)
    at = np.where(steps.first <= steps.high, first, np.inf)
    before = np.where(steps.first > steps.low, first - 1, -np.inf)
    quantized = steps.values - zero_point
    above, below = quantized > 0, quantized <= 0
    return _Sides(
        _Side(_edges(quantized[above]), before[above], at[above]),
        _Side(_edges(1 - quantized[below]), -at[below], -before[below]),
    )


def _edges(magnitudes: IntArray) -> F64Array:
    return least_reaching(magnitudes)[:, None]


def least_reaching(whole: IntArray) -> F64Array:
    """The least number that float32 rounds to a whole number of less than 24 bits, which is positive."""
    numbers = whole.astype(np.float32)
    below = np.nextafter(numbers, np.float32(0)).astype(np.float64)
    return (numbers.astype(np.float64) + below) / 2


# A product of two quantized values, one of which meets many of the other, as one fused multiply-add.
#
# With the offsets a' and b' of two stored values from their zero points, a multiplier m and a constant c in (0, 1),
#
#   g(a', b') = z + trunc(fma(a', f, +-c)),      f = b' m rounded to float32,      the sign of c that of a' b'.
#
# f is computed once for each b, and each a then takes a conversion and a multiply-add.  g is odd in a' and in b', but
# for z, so that magnitudes tell everything.  Let y be |a'| f as an exact number, and v the magnitude that the op's
# arithmetic gives the pair.  The sum reaches a whole number n if and only if y + c reaches e(n), half a unit of the
# last place below n (`multiply_add_rounding`), so that g has the op's value if and only if
#
#   c >= e(v) - y      and      c < e(v + 1) - y,
#
# the first only for v > 0, and the second only where v is no bound of the clamp.  Each of the 65 536 pairs is looked
# at, and c is the middle of what they leave; some multipliers around the given one are tried.

_LARGEST_MULTIPLIER = 2.0**16

_FACTOR_STEPS = (0, 1, -1, 2, -2, 3, -3, 4, -4)


@dataclass(frozen=True)
class FactorProduct:
    """m and c."""

    multiplier: np.float32
    rest: np.float32


def factor_product(
    quantized: IntArray, lhs: IntArray, rhs: IntArray, zero_point: int, bounds: tuple[int, int], near: float
) -> FactorProduct | None:
    """The numbers that give ``quantized[i, j]``, clamped to `bounds`, for the offsets ``lhs[i]`` and ``rhs[j]``.

    `near` is the multiplier of their product; None where no number near to it will do.
    """
    if not _SMALLEST_MULTIPLIER <= near <= _LARGEST_MULTIPLIER or not bounds[0] <= zero_point <= bounds[1]:
        return None
    signs = np.sign(lhs)[:, None] * np.sign(rhs)
    value = (quantized - zero_point) * signs
    is_bound = quantized == np.where(signs > 0, bounds[1], bounds[0])
    if (value < 0).any() or (value[signs == 0] > 0).any() or (quantized[signs == 0] != zero_point).any():
        return None
    magnitudes = np.abs(lhs)[:, None].astype(np.float64), np.abs(rhs).astype(np.float32)
    least = np.where((value > 0) & (signs != 0), least_reaching(value), -np.inf)
    most = np.where(is_bound & (signs != 0), np.inf, least_reaching(value + 1))
    for step in _FACTOR_STEPS:
        multiplier = (np.float32(near).view(np.int32) + np.int32(step)).view(np.float32)
        found = _rest(*magnitudes, multiplier, least, most)
        if found is not None:
            return FactorProduct(multiplier, found)
    return None


def _rest(
    lhs: NDArray[np.float64],
    rhs: NDArray[np.float32],
    multiplier: np.float32,
    least: NDArray[np.float64],
    most: NDArray[np.float64],
) -> np.float32 | None:
    """c for a multiplier; products of 8 bits and 24 bits are exact in float64."""
    exact = lhs * (rhs * multiplier).astype(np.float64)
    low, high = max((least - exact).max() + MARGIN, SMALLEST_REST), min((most - exact).min() - MARGIN, LARGEST_REST)
    rest = np.float32((low + high) / 2)
    return rest if low <= rest < high else None
