"""A requantization as a step function: where each code begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.choices import Rounding
from qdialect.quant_math.fixed_point import IntArray
from qdialect.quant_math.multipliers import FixedMultiplier, FloatMultiplier, RequantizeParameters
from qdialect.quant_math.requantize import requantize

# Where a step is looked for beside its guess: nearly all are there, and most at once.
_FIRST, _NEXT = (-1, 0), (1, -2)
_FAR = 2.0**40


@dataclass(frozen=True)
class Steps:
    """``first[c - lo - 1]`` is the least accumulator of ``low..high`` whose code is c or more, for c in lo + 1..hi.

    int64[hi - lo, C]; ``high + 1`` where there is none.  The quantized values of all accumulators follow, for requantization is
    monotonic in every rounding mode: multipliers are not negative, and a product, a sum and a rounding keep the order.
    """

    first: IntArray
    codes: IntArray
    """lo + 1..hi."""
    low: IntArray
    high: IntArray

    def of(self, channels: NDArray[np.intp]) -> Steps:
        """The steps of these channels."""
        return Steps(self.first[:, channels], self.codes, self.low[channels], self.high[channels])


def steps_of(
    params: RequantizeParameters,
    zero_point: int,
    bounds: tuple[int, int],
    rounding: Rounding,
    acc_range: tuple[IntArray, IntArray],
) -> Steps:
    """The steps of `requantize` for the accumulators ``low[k]..high[k]`` (`acc_range`) of each of C channels.

    `params` have C entries, or one for all.  A step is looked for beside where the real multiplier puts it, then by
    halving what is left.
    """
    low, high = acc_range
    if multiplier_values(params).size == 1 and low.size > 1:
        whole = (low.min(keepdims=True), high.max(keepdims=True))
        one = steps_of(params, zero_point, bounds, rounding, whole)
        return Steps(np.clip(one.first, low, high + 1), one.codes, low, high)
    codes = np.arange(bounds[0] + 1, bounds[1] + 1, dtype=np.int64)
    search = _Search(params, zero_point, bounds, rounding, codes, low, high)
    with np.errstate(all="ignore"):
        position = np.nan_to_num(
            (codes[:, None] - zero_point - 0.5) / multiplier_values(params), posinf=_FAR, neginf=-_FAR
        )
    guess = np.ceil(np.clip(position, -_FAR, _FAR)).astype(np.int64)
    for step in _FIRST:
        search.look_everywhere(np.clip(guess + step, low, high))
    for step in _NEXT:
        search.look_at(np.clip(guess + step, low, high))
    while not search.is_done():
        search.look_at((search.below + search.first) >> 1)
    return Steps(search.first, codes, low, high)


class _Search:
    """Limits of every step, [quantized values, C]: it is above `below` and not above `first`."""

    def __init__(
        self,
        params: RequantizeParameters,
        zero_point: int,
        bounds: tuple[int, int],
        rounding: Rounding,
        codes: IntArray,
        low: IntArray,
        high: IntArray,
    ) -> None:
        self._how = (zero_point, *bounds, rounding)
        self._params = params
        self._codes = codes
        self.below, self.first = (np.repeat(ends[None], len(codes), axis=0) for ends in (low - 1, high + 1))

    def look_everywhere(self, probe: IntArray) -> None:
        """`look_at` for probes that are nearly all between the limits."""
        is_reached = requantize(probe, self._params, *self._how) >= self._codes[:, None]
        self.first = np.where(is_reached, np.minimum(probe, self.first), self.first)
        self.below = np.where(is_reached, self.below, np.maximum(probe, self.below))

    def look_at(self, probe: IntArray) -> None:
        """Evaluate the requantization at `probe` where that is between the limits, and move one of them there."""
        code, channel = np.nonzero((probe > self.below) & (probe < self.first))
        if not len(code):
            return
        acc = probe[code, channel]
        is_reached = requantize(acc, select_channels(self._params, channel), *self._how) >= self._codes[code]
        self.first[code[is_reached], channel[is_reached]] = acc[is_reached]
        self.below[code[~is_reached], channel[~is_reached]] = acc[~is_reached]

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
