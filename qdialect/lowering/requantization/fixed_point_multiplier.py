"""Requantization by one exact multiplication, one addition and one shift, proved equal to the op's own arithmetic.

A requantization is a monotonic step function of the accumulator (`quant_math.thresholds`): for each quantized value c
there is a smallest accumulator t_c that gives it.  With a slope q, 0 < q < 2^32, and a shift s,

  g(x) = floor((x * q + b) / 2^s)

is monotonic too, so that the clamped g is the requantization if and only if for every quantized value c

  t_c * q + b >= c * 2^s      and      (t_c - 1) * q + b < c * 2^s

where the accumulator in question is one that can occur.  For a given q these are bounds of b: a window, which an exact
test of integers finds or finds empty.  Whatever the rounding mode - one rounding or two, float32 or Q31, any rule for
ties, zero point first or last - only its thresholds matter, and they are looked up in the reference's own function.

What the kernel computes has a window of its own.  The product of 32-bit numbers is 64 bits wide, and only its upper
half is kept; with s = 32 + r,

  g(x) = (((x + d) * q >> 32) + a) >> r,      b = d * q + a * 2^32,

for floors compose.  d is added to what the accumulator starts from, so it costs nothing; x + d >= 0 makes all numbers
unsigned.  b mod 2^32 is d * q mod 2^32, which takes any value there is, for q is odd: d = b / q modulo 2^32, and the
first b of the window whose d leaves x + d in 0..2^31 - 1 is taken.

Rounding twice moves thresholds of negative accumulators one way and those of others the other, by more than a window is
wide.  Then b jumps at zero by a multiple of 2^32: a depends on x + d < d.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.operands.parameters import Parameter
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.emitters import EmitRequantize
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math import (
    IntArray,
    RequantizeParameters,
    Rounding,
    Thresholds,
    multiplier_values,
    select_channels,
    thresholds_of,
)

_LARGEST = 2.0**62
"""Of products of an accumulator and a slope, so that 64 bits hold what is formed of them."""
_LONGEST_SHIFT = 20
_SLOPES = (0, 1, -1)
_TRIES = np.arange(64, dtype=np.int64)[:, None]
_WORD = 2**32
_NONE = 2**62


@dataclass(frozen=True)
class FixedPointMultiplier:
    """``(((acc + offset) * slope >> 32) + rest) >> shift`` by channel; its quantized values are not clamped.

    `parameters` are slope, rest and shift; where the rest jumps at zero also a limit and the rest of what is below it.
    """

    offset: NDArray[np.int32]
    parameters: tuple[Parameter, ...]

    def declare(self, kernel: Kernel) -> EmitRequantize:
        """All it needs is read by channel."""
        return _emit


def _emit(body: Body, acc: Value, parameters: Sequence[Value]) -> Value:
    slope, rest, shift, *jump = parameters
    if jump:
        is_below = body.compare("slt", acc, jump[0])
        rest = body.select(is_below, jump[1], rest)
    left, right = (body.cast("arith.extui", value, "i64") for value in (acc, slope))
    product = body.multiply(left, right)
    upper = body.binary("arith.shrui", product, body.constant(32, "i64"))
    high = body.cast("arith.trunci", upper, "i32")
    return body.binary("arith.shrsi", body.add(high, rest), shift)


def fixed_point_multiplier(
    params: RequantizeParameters,
    zero_point: int,
    bounds: tuple[int, int],
    shift: int,
    rounding: Rounding,
    accumulator_range: tuple[IntArray, IntArray],
) -> FixedPointMultiplier | None:
    """The multipliers that equal `requantize` plus `shift` for accumulators ``low..high`` by channel, if there are any.

    Clamped to `bounds`, plus `shift`, its quantized values are those of `requantize`.
    """
    low, high = accumulator_range
    if low.min() < -(2**31) or high.max() >= 2**31:
        return None
    steps = thresholds_of(params, zero_point, bounds, rounding, accumulator_range)
    shifted = Thresholds(steps.first, steps.values + shift, low, high)
    multipliers = _fit(shifted, multiplier_values(select_channels(params, np.arange(len(low)))))
    if not multipliers.found.all():
        return None
    arrays = {"slope": multipliers.slope, "rest": multipliers.rest, "shift": multipliers.shift}
    if multipliers.jump.any():
        arrays |= {"limit": multipliers.offset, "rest_below": multipliers.rest + multipliers.jump}
    parameters = tuple(Parameter(name, "i32", _as_words(values)) for name, values in arrays.items())
    return FixedPointMultiplier(_as_words(multipliers.offset), parameters)


def _as_words(values: IntArray) -> NDArray[np.int32]:
    return values.astype(np.uint64).astype(np.uint32).view(np.int32)


@dataclass
class _Multipliers:
    """Multipliers of C channels; `jump` is what is added to the rest of negative accumulators."""

    slope: IntArray
    shift: IntArray
    offset: IntArray
    rest: IntArray
    jump: IntArray
    found: NDArray[np.bool_]

    def put(self, where: NDArray[np.intp], other: _Multipliers) -> None:
        """Take over what `other` found for the channels `where`."""
        own = where[other.found]
        for mine, its in zip(vars(self).values(), vars(other).values(), strict=True):
            mine[own] = its[other.found]


def _fit(steps: Thresholds, f32: NDArray[np.float64]) -> _Multipliers:
    """A multiplier for each channel that has one: first without, then with a jump at zero."""
    channels = len(f32)
    # 2^-r <= M < 2^(1 - r) makes slopes of 32 bits; what is one or more has none.
    _, exponent = np.frexp(f32)
    shift = np.clip(-exponent.astype(np.int64), 0, _LONGEST_SHIFT)
    nearest = np.rint(np.ldexp(np.minimum(f32, 1), 32 + shift.astype(np.int32))).astype(np.int64)
    is_small = (f32 < 1) & (np.maximum(-steps.low, steps.high) * nearest.astype(np.float64) < _LARGEST)
    multipliers = _Multipliers(*(np.zeros(channels, np.int64) for _ in range(5)), found=np.zeros(channels, np.bool_))
    for is_split in (False, True):
        for change in _SLOPES:
            (left,) = np.nonzero(~multipliers.found & is_small)
            if len(left):
                slope = np.clip((nearest[left] | 1) + 2 * change, 1, _WORD - 1)
                multipliers.put(left, _try(steps.of(left), slope, shift[left], is_split))
    return multipliers


def _try(steps: Thresholds, slope: IntArray, shift: IntArray, is_split: bool) -> _Multipliers:
    """The multiplier for each channel's slope, where one exists."""
    first = steps.first
    at_first = (steps.values[:, None] << (32 + shift)) - first * slope
    window = _Window(at_first, at_first + slope, first <= steps.high, first > steps.low)
    if not is_split:
        return _with_offset(steps, slope, shift, *window.of(np.True_, np.True_), np.zeros_like(slope))
    minimum, end = window.of(first >= 0, first > 0)
    least_below, end_below = window.of(first < 0, first <= 0)
    jump = np.rint(((least_below + end_below) / 2 - (minimum + end) / 2) / _WORD).astype(np.int64)
    minimum, end = np.maximum(minimum, least_below - jump * _WORD), np.minimum(end, end_below - jump * _WORD)
    return _with_offset(steps, slope, shift, minimum, end, jump)


@dataclass(frozen=True)
class _Window:
    """Bounds of b, [quantized values, C]: at least `minimum` at each threshold that occurs, below `end` before it."""

    minimum: IntArray
    end: IntArray
    is_minimum: NDArray[np.bool_]
    is_end: NDArray[np.bool_]

    def of(
        self, after: NDArray[np.bool_] | np.bool_, before: NDArray[np.bool_] | np.bool_
    ) -> tuple[IntArray, IntArray]:
        """The window by channel that is left by the thresholds in `after`, and by what precedes those in `before`."""
        minimum = np.where(self.is_minimum & after, self.minimum, -_NONE).max(axis=0, initial=-_NONE)
        end = np.where(self.is_end & before, self.end, _NONE).min(axis=0, initial=_NONE)
        # Any window will do on a side that nothing bounds.
        is_open, count = end == _NONE, len(_TRIES)
        minimum = np.where(minimum > -_NONE, minimum, np.where(is_open, 0, end - count))
        return minimum, np.where(is_open, minimum + count, end)


def _with_offset(
    steps: Thresholds, slope: IntArray, shift: IntArray, minimum: IntArray, end: IntArray, jump: IntArray
) -> _Multipliers:
    """Offset and rest for the first b of each window that has them."""
    b = minimum + _TRIES
    offset = (b % _WORD * _inverse(slope)) % _WORD
    rest = (b - offset * slope) >> 32
    fits = (b < end) & (offset >= -steps.low) & (offset + steps.high < 2**31)
    for values in (rest, rest + jump, (steps.low * slope + b) >> 32, (steps.high * slope + b) >> 32):
        fits &= np.abs(values) < 2**30
    chosen = fits.argmax(axis=0), np.arange(len(slope))
    return _Multipliers(slope, shift, offset[chosen], rest[chosen], jump, fits.any(axis=0))


def _inverse(odd: IntArray) -> IntArray:
    """``1 / odd`` modulo 2^32; each iteration doubles the number of correct bits, which is 3 at first."""
    found = odd
    for _ in range(4):
        found = found * (2 - odd * found % _WORD) % _WORD
    return found
