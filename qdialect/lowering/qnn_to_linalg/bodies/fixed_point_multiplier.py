"""Requantization by one exact multiplication, one addition and one shift, proved equal to the op's own arithmetic.

A requantization is a monotonic step function of the accumulator (`qdialect.arithmetic.thresholds_of`): for each
quantized value c there is a smallest accumulator t_c that gives it.  With a slope q, 0 < q < 2^32, and a shift s,

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

Shifting lanes by different numbers is slow before AVX2, and the numbers are read.  So one shift for all channels is
looked for first.  A slope is M * 2^(32 + r) for a multiplier M: a shift that is less than the channel's own, by n,
leaves a slope of n bits less, which is still exact where windows are wide; but b jumps by whole units of 2^-r of the
result, which a lesser r does not have.  No shift at all, r = 0, is looked for first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect import arithmetic
from qdialect.lowering.qnn_to_linalg.program.operands import Parameter
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, EmitRequantize, Value

_LARGEST = 2.0**62
"""Of products of an accumulator and a slope, so that 64 bits hold what is formed of them."""
_LONGEST_SHIFT = 20
_COMMON_SHIFT = 4
"""The longest that is tried for all channels: it nearly always does, and kernels that shift alike are one."""
_CHANGES = (0, 2, -2)
"""Of the slope that is nearest, which is odd."""
_TRIES = 64
_FIRST_TRIES = 8
_WORD = 2**32
_NONE = 2**62


@dataclass(frozen=True)
class FixedPointMultiplier:
    """``(((acc + offset) * slope >> 32) + rest) >> shift`` by channel; its quantized values are not clamped.

    `parameters` are slope and rest, and a shift if it differs by channel (`shift` is None then); where the rest jumps
    at zero also a limit and the rest of what is below it.
    """

    offset: NDArray[np.int32]
    parameters: tuple[Parameter, ...]
    shift: int | None

    def declare(self, kernel: Kernel) -> EmitRequantize:
        """A shift of all channels is a number of the tensor; all else is read by channel."""
        if self.shift is None:
            return _emit
        shift = kernel.number("shift", self.shift, "i32")
        return lambda body, acc, parameters: _emit(body, acc, [*parameters[:2], shift, *parameters[2:]])


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


def shifted_thresholds(
    params: arithmetic.RequantizeParameters,
    zero_point: int,
    bounds: tuple[int, int],
    shift: int,
    rounding: arithmetic.Rounding,
    accumulator_range: tuple[arithmetic.IntArray, arithmetic.IntArray],
) -> arithmetic.Thresholds | None:
    """The thresholds of `requantize` plus `shift`, for accumulators in `accumulator_range`, by channel.

    They are those of values clamped to `bounds`, before `shift` is added.  None where accumulators exceed 32 bits.
    """
    low, high = accumulator_range
    if low.min() < -(2**31) or high.max() >= 2**31:
        return None
    steps = arithmetic.thresholds_of(params, zero_point, bounds, rounding, accumulator_range)
    return arithmetic.Thresholds(steps.first, steps.values + shift, low, high)


def channel_multipliers(params: arithmetic.RequantizeParameters, channels: int) -> NDArray[np.float64]:
    """The multiplier of each channel as a number."""
    return arithmetic.multiplier_values(arithmetic.select_channels(params, np.arange(channels)))


def fixed_point_multiplier(steps: arithmetic.Thresholds, near: NDArray[np.float64]) -> FixedPointMultiplier | None:
    """The multipliers with the thresholds `steps`, near to the float64[C] `near`, if every channel has one."""
    multipliers = _fit(steps, near)
    if not multipliers.found.all():
        return None
    own = multipliers.shift
    is_common = bool((own == own[0]).all())
    arrays = {"slope": multipliers.slope, "rest": multipliers.rest} | ({} if is_common else {"shift": own})
    if multipliers.jump.any():
        arrays |= {"limit": multipliers.offset, "rest_below": multipliers.rest + multipliers.jump}
    parameters = tuple(Parameter(name, "i32", _as_words(values)) for name, values in arrays.items())
    return FixedPointMultiplier(_as_words(multipliers.offset), parameters, int(own[0]) if is_common else None)


def _as_words(values: arithmetic.IntArray) -> NDArray[np.int32]:
    return values.astype(np.uint64).astype(np.uint32).view(np.int32)


@dataclass
class _Multipliers:
    """Multipliers of C channels; `jump` is what is added to the rest of negative accumulators."""

    slope: arithmetic.IntArray
    shift: arithmetic.IntArray
    offset: arithmetic.IntArray
    rest: arithmetic.IntArray
    jump: arithmetic.IntArray
    found: NDArray[np.bool_]

    def put(self, where: NDArray[np.intp], other: _Multipliers) -> None:
        """Take over what `other` found for the channels `where`."""
        own = where[other.found]
        for mine, its in zip(vars(self).values(), vars(other).values(), strict=True):
            mine[own] = its[other.found]


def _fit(steps: arithmetic.Thresholds, f32: NDArray[np.float64]) -> _Multipliers:
    """A multiplier for each channel that has one, with one shift for all if possible."""
    # 2^-r <= M < 2^(1 - r) makes slopes of 32 bits; multipliers of one and more have none.
    _, exponent = np.frexp(f32)
    own = np.clip(-exponent.astype(np.int64), 0, _LONGEST_SHIFT)
    for common in sorted({0, min(int(own.min()), _COMMON_SHIFT)}):
        found = _with_shift(steps, f32, np.full_like(own, common), is_jump_allowed=False)
        if found.found.all():
            return found
    return _with_shift(steps, f32, own)


def _with_shift(
    steps: arithmetic.Thresholds, f32: NDArray[np.float64], shift: arithmetic.IntArray, *, is_jump_allowed: bool = True
) -> _Multipliers:
    """A multiplier for each channel that has one with this shift: first without, then with a jump at zero.

    Where no jump is allowed and a channel is known to need one, none is looked for.
    """
    channels = len(f32)
    nearest = np.rint(np.ldexp(np.minimum(f32, 1), 32 + shift.astype(np.int32))).astype(np.int64)
    is_small = (f32 < 1) & (np.maximum(-steps.low, steps.high) * nearest.astype(np.float64) < _LARGEST)
    multipliers = _Multipliers(*(np.zeros(channels, np.int64) for _ in range(5)), found=np.zeros(channels, np.bool_))
    slopes = [np.clip((nearest | 1) + change, 1, _WORD - 1) for change in _CHANGES]
    first = windows_of(steps, slopes[0], shift)
    # Whether another slope may open the window without a jump.
    #
    # A slope that is greater by d moves the bounds at a threshold t by -d t and -d (t - 1).  Two bounds approach each
    # other by |d| (high - low + 2) at most, since low <= t <= high + 1.
    gap = first.minimum.max(axis=0) - first.end.min(axis=0)
    has_line = is_small & (gap < max(_CHANGES) * (first.high - first.low + 2))
    if not is_jump_allowed and not has_line.all():
        return multipliers
    for multipliers_in, is_worth in ((_without_jump, has_line), (_with_jump, is_small & is_jump_allowed)):
        for slope in slopes:
            (left,) = np.nonzero(is_worth & ~multipliers.found)
            if not len(left):
                break
            windows = first.of(left) if slope is slopes[0] else windows_of(steps.of(left), slope[left], shift[left])
            multipliers.put(left, multipliers_in(windows))
    return multipliers


@dataclass(frozen=True)
class Windows:
    """Bounds of b by channel for a slope: rows for accumulators from zero on, and for those below.

    b is at least `minimum`, for each threshold that occurs, and below `end`, for what precedes each; 2^62 and its
    negative are no bound.
    """

    slope: arithmetic.IntArray
    shift: arithmetic.IntArray
    low: arithmetic.IntArray
    high: arithmetic.IntArray
    minimum: arithmetic.IntArray
    end: arithmetic.IntArray

    def of(self, channels: NDArray[np.intp]) -> Windows:
        slope, shift, low, high = self.slope[channels], self.shift[channels], self.low[channels], self.high[channels]
        return Windows(slope, shift, low, high, self.minimum[:, channels], self.end[:, channels])

    def closed(self) -> tuple[arithmetic.IntArray, arithmetic.IntArray]:
        """Where one b serves all accumulators: at least the first, less than the second."""
        return _closed(self.minimum.max(axis=0), self.end.min(axis=0))


def windows_of(steps: arithmetic.Thresholds, slope: arithmetic.IntArray, shift: arithmetic.IntArray) -> Windows:
    """The bounds that all thresholds together set."""
    first = steps.first
    at_first = (steps.values[:, None] << (32 + shift)) - first * slope
    is_minimum, is_end = first <= steps.high, first > steps.low
    after, before = (first >= 0, first < 0), (first > 0, first <= 0)
    greatest = [np.where(is_minimum & side, at_first, -_NONE).max(axis=0, initial=-_NONE) for side in after]
    least = np.array([np.where(is_end & side, at_first, _NONE).min(axis=0, initial=_NONE) for side in before])
    end = np.where(least < _NONE, least + slope, _NONE)
    return Windows(slope, shift, steps.low, steps.high, np.array(greatest), end)


def _without_jump(windows: Windows) -> _Multipliers:
    """The multipliers with one rest for all accumulators."""
    return _with_offset(windows, *windows.closed(), np.zeros_like(windows.slope))


def _with_jump(windows: Windows) -> _Multipliers:
    """The multipliers whose rest changes at zero."""
    (minimum, least_below), (end, end_below) = _closed(windows.minimum, windows.end)
    jump = np.rint(((least_below + end_below) / 2 - (minimum + end) / 2) / _WORD).astype(np.int64)
    minimum, end = np.maximum(minimum, least_below - jump * _WORD), np.minimum(end, end_below - jump * _WORD)
    return _with_offset(windows, minimum, end, jump)


def _closed(minimum: arithmetic.IntArray, end: arithmetic.IntArray) -> tuple[arithmetic.IntArray, arithmetic.IntArray]:
    """A window with two bounds: any will do on a side that nothing bounds."""
    is_open, count = end == _NONE, _TRIES
    minimum = np.where(minimum > -_NONE, minimum, np.where(is_open, 0, end - count))
    return minimum, np.where(is_open, minimum + count, end)


def _with_offset(
    windows: Windows, minimum: arithmetic.IntArray, end: arithmetic.IntArray, jump: arithmetic.IntArray
) -> _Multipliers:
    """Offset and rest for the first b of each window that has them; nearly all are among the first few."""
    channels = len(minimum)
    offset, rest = np.zeros((2, channels), np.int64)
    found = _Multipliers(windows.slope, windows.shift, offset, rest, jump, np.zeros(channels, np.bool_))
    for tries in (range(_FIRST_TRIES), range(_FIRST_TRIES, _TRIES)):
        (left,) = np.nonzero(~found.found & (minimum + tries.start < end))
        if len(left):
            found.put(left, _among(windows.of(left), minimum[left], end[left], jump[left], tries))
    return found


def _among(
    windows: Windows, minimum: arithmetic.IntArray, end: arithmetic.IntArray, jump: arithmetic.IntArray, tries: range
) -> _Multipliers:
    """Offset and rest for the first b of each window, counted from its minimum, that has them."""
    slope = windows.slope
    b = minimum + np.array(tries)[:, None]
    offset = (b % _WORD * _inverse(slope)) % _WORD
    rest = (b - offset * slope) >> 32
    fits = (b < end) & (offset >= -windows.low) & (offset + windows.high < 2**31)
    for values in (rest, rest + jump, (windows.low * slope + b) >> 32, (windows.high * slope + b) >> 32):
        fits &= np.abs(values) < 2**30
    chosen = fits.argmax(axis=0), np.arange(len(slope))
    return _Multipliers(slope, windows.shift, offset[chosen], rest[chosen], jump, fits.any(axis=0))


def _inverse(odd: arithmetic.IntArray) -> arithmetic.IntArray:
    """``1 / odd`` modulo 2^32; each iteration doubles the number of correct bits, which is 3 at first."""
    found = odd
    for _ in range(4):
        found = found * (2 - odd * found % _WORD) % _WORD
    return found
