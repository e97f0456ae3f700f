"""The tables of softmax: TFLite's fixed-point exponentials and reciprocal, and ONNX Runtime's float32 exponentials."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import multipliers
from qdialect.arithmetic.activations import exp
from qdialect.arithmetic.fixed_point_functions import exponential
from qdialect.arithmetic.machine import Machine, V, doubling_high, saturated_left

_ONE_Q31 = 2**31 - 1
# Scaled differences are Q5.26; sums of exponentials are Q12.19.
_DIFF_INTEGER_BITS = 5
_DIFF_FRACTION_BITS = 26
_SUM_INTEGER_BITS = 12


@dataclass(frozen=True)
class SoftmaxTables:
    """e^(-d * scale * beta) for the distance d = 0..255 of a value from the row's maximum.

    `exponentials` are Q0.31, zero beyond the radius the fixed point can hold; `addends` are the same in Q12.19, the
    format of the sum.  Both are int32[256].
    """

    exponentials: NDArray[np.int32]
    addends: NDArray[np.int32]


def softmax_tables(input_scale: float, beta: float) -> SoftmaxTables:
    """Tables of TFLite's SOFTMAX: input_scale * beta in Q5.26 multiplies the distance, then a fixed-point exponential.

    The multiplier input_scale * beta * 2^26, at most 2^31 - 1, has a left shift e.  Distances above
    floor(31 * 2^26 / 2^e) would leave Q5.26 and count as zero probability.

    Raises:
        ValueError: input_scale * beta * 2^26 is not above 1, which the kernel refuses.
    """
    f32 = min(beta * input_scale * 2**_DIFF_FRACTION_BITS, float(_ONE_Q31))
    if not f32 > 1:
        raise ValueError(f"input scale times beta must exceed 2^-{_DIFF_FRACTION_BITS}, but got {beta * input_scale}")
    q, e = multipliers.quantize_multiplier(f32)
    radius = (((1 << _DIFF_INTEGER_BITS) - 1) << _DIFF_FRACTION_BITS) >> e
    distances = np.arange(256, dtype=np.int64)
    inside = distances <= radius
    scaled = multipliers.doubling_high_multiply(-np.where(inside, distances, 0) << e, q)
    exponentials = np.where(inside, exponential(scaled, _DIFF_INTEGER_BITS, 32), 0)
    addends = multipliers.rounding_shift_right(exponentials, _SUM_INTEGER_BITS)
    return SoftmaxTables(exponentials.astype(np.int32), addends.astype(np.int32))


_NEWTON_STEPS = 3
# Of a sum with z leading zeros, 12 - z integer bits; the result keeps 8 bits below the point of a Q0.31 product.
_SHIFT_WITHOUT_ZEROS = _SUM_INTEGER_BITS + 31 - 8


def reciprocal(m: Machine[V], total: V) -> V:
    """1 / `total` as Q0.31 and the exponent of a power of two, i32 both, for a positive `total` (gemmlowp).

    The leading zeros of `total` normalize it to d in [1/2, 1); three Newton steps on d, x in Q2.29.
    """
    normal = m.binary("arith.shli", total, m.unary("math.ctlz", total))
    half = m.binary("arith.shrui", normal, m.constant(1, "i32"))
    denominator = m.cast("arith.extui", half, "i64")
    slope = doubling_high(m, denominator, m.constant(multipliers.NEWTON_SLOPE, "i64"))
    x = m.add(m.constant(multipliers.NEWTON_CONSTANT, "i64"), slope)
    for _ in range(_NEWTON_STEPS):
        product = doubling_high(m, denominator, x)
        error = m.subtract(m.constant(2**29, "i64"), product)
        x = m.add(x, saturated_left(m, doubling_high(m, x, error), 2))
    return m.cast("arith.trunci", saturated_left(m, x, 1), "i32")


def share_shift(m: Machine[V], total: V) -> V:
    """By how many bits the product with the reciprocal of `total` is shifted right, i32."""
    shift = m.constant(_SHIFT_WITHOUT_ZEROS, "i32")
    return m.subtract(shift, m.unary("math.ctlz", total))


def share(m: Machine[V], exponential: V, inverse: V, shift: V) -> V:
    """``exponential / total`` in Q0.8, saturated, i64, of the `reciprocal` and `share_shift` of the total; all i32."""
    e, r, n = (m.cast("arith.extui", value, "i64") for value in (exponential, inverse, shift))
    product = doubling_high(m, e, r)
    one = m.constant(1, "i64")
    # Nothing here is negative: adding one half before the shift rounds ties away from zero.
    half = m.binary("arith.shli", one, m.subtract(n, one))
    quantized = m.binary("arith.shrui", m.add(product, half), n)
    return m.binary("arith.minsi", quantized, m.constant(255, "i64"))


# How far, in powers of e, ONNX Runtime keeps the largest sum of a row below the largest float32.
_RESERVE = np.float32(5)


def ort_entries(input_scale: float, beta: float, extent: int) -> NDArray[np.float32]:
    """float32[256]: e^(t - d * s) for the distance d from the row's maximum, s = float32(s_x) * float32(beta).

    t = log(largest float32 / extent) - 5, in float32, keeps the sum of `extent` entries finite.  Exponents are formed
    in float64 as ``(b - d) * s`` with b = t / s.
    """
    scale = float(np.float32(input_scale) * np.float32(beta))
    maximum = np.finfo(np.float32).max / np.float32(extent)
    shift = max(0.0, float(np.float32(math.log(maximum)) - _RESERVE)) / scale
    # The math library's exponential: entries must not depend on NumPy's.
    return np.array([math.exp((shift - distance) * scale) for distance in range(256)]).astype(np.float32)


def ort_factor(output_scale: float) -> np.float32:
    """The factor of an entry: ``floor(float32(1 / s_y))``."""
    return np.floor(np.float32(1) / np.float32(output_scale))


def ort_largest(entries: NDArray[np.float32], factor: np.float32) -> np.float32 | None:
    """The largest entry whose product with `factor` is finite, None where all are, 0 where none is."""
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(entries * factor)
    return None if is_finite.all() else np.max(entries[is_finite], initial=np.float32(0))


def ort_beyond(output_zero_point: int, lo: int, hi: int) -> int:
    """The result of a product beyond float32: as an integer it is -2^31, to which the zero point is added.

    That is in 8 bits for ui8, and in 32 bits that wrap around and saturate for i8.
    """
    if lo == 0:
        return output_zero_point
    return hi if output_zero_point < 0 else lo


def float_entries(input_scale: float, beta: float) -> NDArray[np.float32]:
    """float32[256]: e^(-d * s) for the distance d from the row's maximum, s = float32(s_x) * float32(beta)."""
    step = np.float32(input_scale) * np.float32(beta)
    return np.asarray(exp(-np.arange(256, dtype=np.float32) * step), dtype=np.float32)


def float_share(m: Machine[V], entry: V, total: V, output_scale: V) -> V:
    """``entry / total / output_scale``."""
    return m.binary("arith.divf", m.binary("arith.divf", entry, total), output_scale)


def ort_share(m: Machine[V], entry: V, total: V, factor: V, largest: np.float32 | None, beyond: float) -> V:
    """``entry * factor / total``; `beyond` where the product is beyond float32, see `ort_largest`."""
    found = m.binary("arith.divf", m.multiply(entry, factor), total)
    if largest is None:
        return found
    is_beyond = m.compare("ogt", entry, m.constant(float(largest), "f32"))
    return m.select(is_beyond, m.constant(beyond, "f32"), found)
