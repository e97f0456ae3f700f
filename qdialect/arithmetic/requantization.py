"""Requantizes accumulators in every rounding mode, and finds the accumulator at which each quantized value begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.choices import FloatRounding, I16Rounding, Multiplier, Rounding, Scaling
from qdialect.arithmetic.machine import NUMPY, Machine, V
from qdialect.arithmetic.multipliers import (
    INT32_MAX,
    INT32_MIN,
    FixedMultiplier,
    FloatMultiplier,
    IntArray,
    RequantizeParameters,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    real_multiplier,
)
from qdialect.arithmetic.quantization import along_axis, round_f32, saturate_f32, scale_factors

_FLOAT_ROUNDING = {
    Rounding.F32_RNE_ZP_LAST: FloatRounding.HALF_EVEN,
    Rounding.F32_RNE_ZP_FIRST: FloatRounding.HALF_EVEN,
    Rounding.F32_UP_ZP_FIRST: FloatRounding.HALF_UP,
    Rounding.F32_NEAREST_ZP_FIRST: FloatRounding.HALF_AWAY,
}


def requantize(
    acc: NDArray[np.integer[Any]],
    params: RequantizeParameters,
    output_zero_point: int,
    lo: int,
    hi: int,
    rounding: Rounding,
) -> IntArray:
    """clamp(round(acc * M) + z) to [lo, hi], int64 of the shape of `acc`.

    `acc` is [..., C] or any shape when there is one multiplier; its own zero point is already subtracted.

    * fixed rounding modes: integer multiply (see `multiply_by_quantized_multiplier`), then + z, then clamp.
    * `f32_rne_zp_last`: half_even(float32(acc) * m), then + z.  ONNX Runtime clamps to [lo - z, hi - z] before it
      rounds; the bounds are integers and rounding is monotonic, so the order makes no difference.
    * the `zp_first` rounding modes: v = float32(acc) * m, then v + float32(z), then round.  Both results are rounded to
      float32, and no multiply-add is fused.

    Raises:
        ValueError: the parameters do not belong to `rounding`.
    """
    if rounding.is_fixed != isinstance(params, FixedMultiplier):
        raise ValueError(f"requantize parameters must belong to {rounding}, but got {type(params).__name__}")
    if isinstance(params, FixedMultiplier):
        q, e = (along_axis(parameter, acc.ndim, -1) for parameter in (params.q, params.e))
        scaled = multiply_by_quantized_multiplier(acc, q, e, rounding)
        return np.clip(scaled + output_zero_point, lo, hi)
    with np.errstate(over="ignore"):
        value = acc.astype(np.float32) * along_axis(params.m, acc.ndim, -1)
    return _round_f32(value, output_zero_point, lo, hi, rounding)


def _round_f32(value: NDArray[np.float32], zero_point: int, lo: int, hi: int, rounding: Rounding) -> IntArray:
    if rounding is Rounding.F32_RNE_ZP_LAST:
        rounded = round_f32(value, FloatRounding.HALF_EVEN)
        return saturate_f32(rounded, lo - zero_point, hi - zero_point) + zero_point
    return saturate_f32(round_f32(value + np.float32(zero_point), _FLOAT_ROUNDING[rounding]), lo, hi)


def requantize_f32(
    values: NDArray[np.float32],
    output_scale: float,
    output_zero_point: int,
    lo: int,
    hi: int,
    rounding: Rounding,
    scaling: Scaling,
) -> IntArray:
    """clamp(round(values / s) + z) to [lo, hi], int64: ties and zero point as in the float rounding mode `rounding`.

    Other scalings multiply by a reciprocal instead, see `scale_factors`.  Every operation is rounded to float32.
    NaN, which an infinite bias may lead to, becomes `lo`.

    Raises:
        ValueError: `rounding` is a fixed-point one.
    """
    if rounding.is_fixed:
        raise ValueError(f"rounding must be of f32 values, but got {rounding}")
    factor = np.float32(scale_factors(output_scale, scaling))
    with np.errstate(over="ignore"):
        value = values / factor if scaling is Scaling.DIVIDE else values * factor
    value = np.where(np.isnan(value), -np.float32(np.inf), value)
    return _round_f32(value, output_zero_point, lo, hi, rounding)


_LOW_BITS = 16
# The largest Q31 number that does not round to 2^15 without its low bits.
_LARGEST_ROUNDED = 0x7FFF0000
_LARGEST_REDUCED = 0x7FFF


def reduced_multiplier(q: int, e: int) -> tuple[int, int]:
    """(r, n) with q * 2^(e - 31) ~ r * 2^-n and r below 2^15: q without its 16 low bits, rounded; n = 15 - e.

    TFLite MultiplyByQuantizedMultiplier of an int64; r ends at 2^15 - 1.
    """
    rounded = (q + (1 << (_LOW_BITS - 1))) >> _LOW_BITS if q < _LARGEST_ROUNDED else _LARGEST_REDUCED
    return rounded, 15 - e


def reduced_multipliers(multipliers: NDArray[np.float64]) -> tuple[IntArray, IntArray]:
    """r and n of each real multiplier, int64[C]; raises `ValueError` where n is not in [1, 62]."""
    pairs = [reduced_multiplier(*quantize_multiplier(float(m))) for m in multipliers]
    r, n = (np.array(numbers, dtype=np.int64) for numbers in zip(*pairs, strict=True))
    if not ((n >= 1) & (n <= 62)).all():
        raise ValueError(f"multipliers must be below 2^14, but got {multipliers.max()}")
    return r, n


def multiply_by_reduced_multiplier(m: Machine[V], acc: V, r: V, n: V) -> V:
    """``(acc * r + 2^(n - 1)) >> n`` in 64 bits, of which 32 stay."""
    one = m.constant(1, "i64")
    half = m.binary("arith.shli", one, m.subtract(n, one))
    product = m.multiply(m.cast("arith.extsi", acc, "i64"), r)
    shifted = m.binary("arith.shrsi", m.add(product, half), n)
    return m.cast("arith.trunci", shifted, "i32")


def nearest_product(m: Machine[V], acc: V, multiplier: V) -> V:
    """``half_away(acc * multiplier)``, i32, in float64; what lies beyond int32 is cut before."""
    inside = _product_inside(m, acc, multiplier)
    whole = m.cast("arith.fptosi", inside, "i32")
    rest = m.subtract(inside, m.cast("arith.sitofp", whole, "f64"))
    zero, one, minus = (m.constant(number, "i32") for number in (0, 1, -1))
    up = m.select(m.compare("oge", rest, m.constant(0.5, "f64")), one, zero)
    down = m.select(m.compare("ole", rest, m.constant(-0.5, "f64")), minus, zero)
    return m.add(whole, m.add(up, down))


def even_product(m: Machine[V], acc: V, multiplier: V) -> V:
    """``half_even(acc * multiplier)``, i32, in float64; what lies beyond int32 is cut before.

    Float64 numbers from 2^52 on are whole: adding one rounds to them, to even as every sum.
    """
    whole = m.constant(1.5 * 2.0**52, "f64")
    rounded = m.subtract(m.add(_product_inside(m, acc, multiplier), whole), whole)
    return m.cast("arith.fptosi", rounded, "i32")


def _product_inside(m: Machine[V], acc: V, multiplier: V) -> V:
    """``acc * multiplier`` in float64, between the bounds of int32."""
    product = m.multiply(m.cast("arith.sitofp", acc, "f64"), multiplier)
    return m.clamp(product, m.constant(-(2.0**31), "f64"), m.constant(2.0**31 - 1, "f64"))


def i16_requantize(
    acc: IntArray,
    input_scale: float,
    weight_scales: Sequence[float],
    output_scale: float,
    output_zero_point: int,
    lo: int,
    hi: int,
    rounding: I16Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """clamp(round(acc * M) + z) to [lo, hi], int64 of the shape of `acc`; M has one entry, or one for each last index.

    * `fixed32_double`: see `multiply_by_quantized_multiplier`.
    * `fixed16_up`: see `multiply_by_reduced_multiplier`.
    * `f64_nearest`: see `nearest_product`; `f64_even`: see `even_product`.
    """
    multipliers = real_multiplier(input_scale, weight_scales, output_scale, multiplier)
    if rounding is I16Rounding.F64_NEAREST:
        scaled = nearest_product(NUMPY, acc, multipliers)
    elif rounding is I16Rounding.F64_EVEN:
        scaled = even_product(NUMPY, acc, multipliers)
    elif rounding is I16Rounding.FIXED16_UP:
        scaled = multiply_by_reduced_multiplier(NUMPY, acc, *reduced_multipliers(multipliers))
    else:
        q, e = np.array([quantize_multiplier(float(m)) for m in multipliers], dtype=np.int64).T
        scaled = multiply_by_quantized_multiplier(acc, q, e, Rounding.FIXED32_DOUBLE)
    return np.clip(scaled.astype(np.int64) + output_zero_point, lo, hi)


def accumulator_range(
    weights: NDArray[np.integer[Any]], bias: NDArray[np.integer[Any]], offsets: tuple[int, int]
) -> tuple[IntArray, IntArray]:
    """The least and the largest ``bias[c] + sum_k x[k] * weights[c, k]`` for any x in `offsets`, int64[C] each.

    `weights` is [C, K], their zero points subtracted; `offsets` are the quantized values of the data less their zero
    point, so that 0, which stands for what a window leaves out at an edge, lies between them.
    """
    zero = weights.dtype.type(0)
    above, below = (limit(weights, zero).sum(axis=1, dtype=np.int64) for limit in (np.maximum, np.minimum))
    low, high = offsets
    start = bias.astype(np.int64)
    return start + low * above + high * below, start + high * above + low * below


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
