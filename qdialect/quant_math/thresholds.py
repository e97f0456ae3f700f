"""A requantization as a step function: the least accumulator of each quantized value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.choices import Rounding
from qdialect.quant_math.fixed_point import INT32_MAX, INT32_MIN, IntArray
from qdialect.quant_math.multipliers import FixedMultiplier, FloatMultiplier, RequantizeParameters
from qdialect.quant_math.requantize import requantize

# Distances from the guess at which a threshold is looked for: nearly all are there, and most at the first two.
_FIRST, _NEXT = (-1, 0), (1, -2)
_FAR = 2.0**40
_WORD_BITS = 31


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of a requantization to ``lo..hi``, for the accumulators ``low..high`` of each of C channels.

    ``first[q - lo - 1]``, int64[hi - lo, C], is the least accumulator that becomes q or more, for q in lo + 1..hi, and
    ``high + 1`` where none does.  The quantized values of all accumulators follow, for requantization is monotonic in
    every rounding mode: multipliers are not negative, and a product, a sum and a rounding keep the order.
    """

    first: IntArray
    values: IntArray
    """lo + 1..hi."""
    low: IntArray
    high: IntArray

    def of(self, channels: NDArray[np.intp]) -> Thresholds:
        """The thresholds of these channels."""
        return Thresholds(self.first[:, channels], self.values, self.low[channels], self.high[channels])


def thresholds_of(
    params: RequantizeParameters,
    zero_point: int,
    bounds: tuple[int, int],
    rounding: Rounding,
    acc_range: tuple[IntArray, IntArray],
) -> Thresholds:
    """The thresholds of `requantize` for the accumulators ``low[k]..high[k]`` (`acc_range`) of each of C channels.

    `params` have C entries, or one for all.  A threshold that has no formula is looked for near the accumulator at
    which the real multiplier puts it, then by bisection.
    """
    low, high = acc_range
    if multiplier_values(params).size == 1 and low.size > 1:
        union = (low.min(keepdims=True), high.max(keepdims=True))
        one = thresholds_of(params, zero_point, bounds, rounding, union)
        return Thresholds(np.clip(one.first, low, high + 1), one.values, low, high)
    values = np.arange(bounds[0] + 1, bounds[1] + 1, dtype=np.int64)
    if (
        rounding is Rounding.FIXED32_DOUBLE
        and isinstance(params, FixedMultiplier)
        and _only_shifts_right(params, acc_range)
    ):
        first = _of_double_rounding(params, values - zero_point)
        return Thresholds(np.clip(first, low, high + 1, out=first), values, low, high)
    search = _Search(params, zero_point, bounds, rounding, values, low, high)
    with np.errstate(all="ignore"):
        position = np.nan_to_num(
            (values[:, None] - zero_point - 0.5) / multiplier_values(params), posinf=_FAR, neginf=-_FAR
        )
    guess = np.ceil(np.clip(position, -_FAR, _FAR)).astype(np.int64)
    for distance in _FIRST:
        search.look_everywhere(np.clip(guess + distance, low, high))
    for distance in _NEXT:
        search.look_at(np.clip(guess + distance, low, high))
    while not search.is_done():
        search.look_at((search.below + search.first) >> 1)
    return Thresholds(search.first, values, low, high)


def _only_shifts_right(params: FixedMultiplier, acc_range: tuple[IntArray, IntArray]) -> bool:
    """Whether `fixed32_double` saturates nowhere on its way, so that its thresholds have a formula."""
    low, high = acc_range
    is_word = low.min() >= INT32_MIN and high.max() <= INT32_MAX
    return bool(is_word and params.q.min() > 0 and params.e.max() <= 0 and params.e.min() >= -_WORD_BITS)


def _of_double_rounding(params: FixedMultiplier, quantized: IntArray) -> IntArray:
    """The least x that `fixed32_double` takes to each v of `quantized` or more, by channel.

    With n = -e, y = floor((x q + 2^30) / 2^31) is divided by 2^n, ties away from zero: v or more is what y becomes from

      Y = v 2^n - 2^(n - 1)         v > 0, for the tie below v goes up to it
      Y = v 2^n - 2^(n - 1) + 1     v <= 0, for the tie below v goes down
      Y = v                         n = 0

    on, and y >= Y  <=>  x q + 2^30 >= Y 2^31  <=>  x >= ceil((Y 2^31 - 2^30) / q).  All y are of 32 bits, so that a Y
    beyond them may be moved to their ends, and 63 bits hold its multiple.
    """
    v, shift = quantized[:, None], -params.e.astype(np.int64)
    half = (np.int64(1) << shift) >> 1
    least = (v << shift) - half + ((v <= 0) & (half > 0))
    np.clip(least, INT32_MIN, INT32_MAX + 1, out=least)
    # ceil(a / q) = -floor(-a / q).
    negative = (1 << 30) - (least << 31)
    return -(negative // params.q)


class _Search:
    """Limits of every threshold, [quantized values, C]: it is above `below` and not above `first`."""

    def __init__(
        self,
        params: RequantizeParameters,
        zero_point: int,
        bounds: tuple[int, int],
        rounding: Rounding,
        values: IntArray,
        low: IntArray,
        high: IntArray,
    ) -> None:
        self._how = (zero_point, *bounds, rounding)
        self._params = params
        self._values = values
        self.below, self.first = (np.repeat(ends[None], len(values), axis=0) for ends in (low - 1, high + 1))

    def look_everywhere(self, probe: IntArray) -> None:
        """`look_at` for probes that are nearly all between the limits."""
        is_reached = requantize(probe, self._params, *self._how) >= self._values[:, None]
        self.first = np.where(is_reached, np.minimum(probe, self.first), self.first)
        self.below = np.where(is_reached, self.below, np.maximum(probe, self.below))

    def look_at(self, probe: IntArray) -> None:
        """Evaluate the requantization at `probe` where that is between the limits, and move one of them there."""
        index, channel = np.nonzero((probe > self.below) & (probe < self.first))
        if not len(index):
            return
        acc = probe[index, channel]
        is_reached = requantize(acc, select_channels(self._params, channel), *self._how) >= self._values[index]
        self.first[index[is_reached], channel[is_reached]] = acc[is_reached]
        self.below[index[~is_reached], channel[~is_reached]] = acc[~is_reached]

    def is_done(self) -> bool:
        return bool((self.first - self.below == 1).all())


def select_channels(params: RequantizeParameters, channels: NDArray[np.intp]) -> RequantizeParameters:
    """The multipliers of these channels; one multiplier is that of every channel."""
    if isinstance(params, FixedMultiplier):
        own = np.zeros_like(channels) if len(params.q) == 1 else channels
        return FixedMultiplier(params.q[own], params.e[own])
    return FloatMultiplier(params.m[np.zeros_like(channels) if len(params.m) == 1 else channels])


def multiplier_values(params: RequantizeParameters) -> NDArray[np.float64]:
    """Multipliers as f32 values."""
    if isinstance(params, FixedMultiplier):
        return np.ldexp(params.q.astype(np.float64), params.e - 31)
    return params.m.astype(np.float64)
