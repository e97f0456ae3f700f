"""Computes functions of fixed-point numbers by integers alone: inverse roots, normalizations, sigmoid and tanh."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import multipliers
from qdialect.arithmetic.machine import NUMPY, Machine, V, doubling_high, rounded_right, saturated_left

# Of Q3.28: one, one and a half.  Of Q0.31: the square root of one half.
_ROOT_ONE, _THREE_HALVES, _HALF_ROOT = 1 << 28, 3 << 27, 1518500250
_ROOT_NEWTON_STEPS = 5
_LARGEST = 2**31 - 1


def inverse_root(m: Machine[V], total: V) -> V:
    """The Q0.31 mantissa of 1 / sqrt(`total`), i32, for 0 <= `total` < 2^31 (TFLite GetInvSqrtQuantized...).

    Pairs of bits normalize the total to [1/4, 1) of Q3.28, where five Newton steps x * (3/2 - a/2 * x^2) start from
    one.  Zero and one both give the largest Q31 number.
    """
    value, shift = _normalized(m, total)
    pairs = _pairs(m, value)
    one = m.constant(1, "i32")
    fraction = m.binary("arith.shli", value, m.binary("arith.shli", pairs, one))
    up = m.add(m.binary("arith.shrui", fraction, one), one)
    half = m.cast("arith.extui", m.binary("arith.shrui", up, one), "i64")
    x = m.constant(_ROOT_ONE, "i64")
    for _ in range(_ROOT_NEWTON_STEPS):
        cube = saturated_left(m, doubling_high(m, doubling_high(m, x, x), x), 6)
        slope = doubling_high(m, m.constant(_THREE_HALVES, "i64"), x)
        x = saturated_left(m, m.subtract(slope, doubling_high(m, half, cube)), 3)
    root = m.cast("arith.trunci", doubling_high(m, x, m.constant(_HALF_ROOT, "i64")), "i32")
    # Where the shift would be negative the mantissa moves instead.
    shift = m.subtract(shift, pairs)
    zero = m.constant(0, "i32")
    left = m.binary("arith.maxsi", m.subtract(zero, shift), zero)
    return _unless_small(m, total, m.binary("arith.shli", root, left), _LARGEST)


def root_shift(m: Machine[V], total: V) -> V:
    """The shift with 1 / sqrt(`total`) ~ q * 2^(-31 - shift) of the mantissa q, i32."""
    value, shift = _normalized(m, total)
    shift = m.subtract(shift, _pairs(m, value))
    return _unless_small(m, total, m.binary("arith.maxsi", shift, m.constant(0, "i32")), 0)


def inverse_roots(totals: multipliers.IntArray) -> tuple[multipliers.IntArray, multipliers.IntArray]:
    """Mantissas and shifts of an array."""
    words = totals.astype(np.int32)
    return inverse_root(NUMPY, words).astype(np.int64), root_shift(NUMPY, words).astype(np.int64)


def _normalized(m: Machine[V], total: V) -> tuple[V, V]:
    """`total`, at least 2 and below 2^29, and the shift that this leaves: 11, or 12 where it was divided by four."""
    two = m.constant(2, "i32")
    value = m.binary("arith.maxsi", total, two)
    is_large = m.compare("sge", value, m.constant(1 << 29, "i32"))
    value = m.select(is_large, m.binary("arith.shrui", value, two), value)
    return value, m.select(is_large, m.constant(12, "i32"), m.constant(11, "i32"))


def _pairs(m: Machine[V], value: V) -> V:
    """Pairs of bits by which `value` is shifted up: (leading zeros - 1) / 2 - 1."""
    one = m.constant(1, "i32")
    free = m.subtract(m.unary("math.ctlz", value), one)
    return m.subtract(m.binary("arith.shrui", free, one), one)


def _unless_small(m: Machine[V], total: V, value: V, small: int) -> V:
    is_small = m.compare("sle", total, m.constant(1, "i32"))
    return m.select(is_small, m.constant(small, "i32"), value)


# TFLite's L2 normalization and its layer normalization of 16-bit rows (PortableApplyLayerNorm), of numbers in i64.

_UNIT_BITS = 7
"""Quantized values of scale 1/128 are 2^7 times the normalized ones."""
_FRACTION_BITS, _GATE_BITS = 10, 12
_WORD_BOUNDS = (-(2**15), 2**15 - 1)
# By which every number but zero is saturated.
_LARGEST_SHIFT = 31


def scaled_by_root(m: Machine[V], offset: V, root: V, shift: V, *, is_signed: bool) -> V:
    """128 * `offset` times an inverse root; both roundings of the product are gemmlowp's.

    The factor comes before them for unsigned quantized values, and is part of the exponent for signed ones.
    """
    unit_bits, right = m.constant(_UNIT_BITS, "i64"), shift
    left = unit_bits
    if is_signed:
        zero = m.constant(0, "i64")
        left = m.binary("arith.maxsi", m.subtract(unit_bits, shift), zero)
        right = m.binary("arith.maxsi", m.subtract(shift, unit_bits), zero)
    return rounded_right(m, doubling_high(m, m.binary("arith.shli", offset, left), root), right)


def row_mean(m: Machine[V], total: V, count: int) -> V:
    """The mean, i32, with 10 fractional bits, truncated."""
    scaled = m.multiply(total, m.constant(1 << _FRACTION_BITS, "i64"))
    return m.cast("arith.trunci", m.binary("arith.divsi", scaled, m.constant(count, "i64")), "i32")


def row_variance(m: Machine[V], squares: V, mean: V, count: int, guard: int) -> V:
    """The variance, i32, truncated, of a sum of squares; below one it is `guard`."""
    one = m.constant(1 << 2 * _FRACTION_BITS, "i64")
    scaled = m.multiply(squares, m.constant((1 << 2 * _FRACTION_BITS) // count, "i64"))
    quotient = m.binary("arith.divsi", m.subtract(scaled, m.multiply(mean, mean)), one)
    is_small = m.compare("slt", quotient, m.constant(1, "i64"))
    return m.cast("arith.trunci", m.select(is_small, m.constant(guard, "i64"), quotient), "i32")


def layer_normalized(m: Machine[V], x: V, mean: V, root: V, shift: V, weight: V, bias: V, scale: float) -> V:
    """The i16 result of an element; its product with the weight wraps around in 32 bits."""
    factor, exponent = multipliers.quantize_multiplier(scale)
    distance = m.subtract(m.multiply(x, m.constant(1 << _FRACTION_BITS, "i64")), mean)
    rescaled = rounded_right(m, doubling_high(m, distance, root), shift)
    product = m.cast("arith.trunci", m.add(m.multiply(rescaled, weight), bias), "i32")
    fewer = _without_fraction(m, m.cast("arith.extsi", product, "i64"))
    total = _scaled(m, fewer, factor, min(exponent + _GATE_BITS, _LARGEST_SHIFT))
    low, high = (m.constant(bound, "i64") for bound in _WORD_BOUNDS)
    return m.cast("arith.trunci", m.clamp(total, low, high), "i16")


def _without_fraction(m: Machine[V], value: V) -> V:
    """``value / 2^10``, ties away from zero, by truncation."""
    half, one = m.constant(1 << (_FRACTION_BITS - 1), "i64"), m.constant(1 << _FRACTION_BITS, "i64")
    is_positive = m.compare("sgt", value, m.constant(0, "i64"))
    moved = m.select(is_positive, m.add(value, half), m.subtract(value, half))
    return m.binary("arith.divsi", moved, one)


def _scaled(m: Machine[V], value: V, factor: int, exponent: int) -> V:
    """``value * factor * 2^(exponent - 31)``, rounded twice."""
    shifted = saturated_left(m, value, exponent) if exponent > 0 else value
    high = doubling_high(m, shifted, m.constant(factor, "i64"))
    return rounded_right(m, high, m.constant(-exponent, "i64")) if exponent < 0 else high


# Exponentials in the bits of gemmlowp's fixedpoint.h, of numbers of 16 or 32 bits.
#
# A number Qm.n has m bits before its point and n behind it, and a sign.

# Below -2^5 the exponential is zero; arguments of fewer integer bits stay above.
_BITS_OF_LIMIT, _LIMIT = 5, -32


def exponential(values: multipliers.IntArray, integer_bits: int, bits: int) -> multipliers.IntArray:
    """gemmlowp ``exp_on_negative_values``: e^x in Q0.`bits` - 1 for x <= 0 with `integer_bits`; e^0 is the largest one.

    x = r - m with r in [-1/4, 0) and m a multiple of a quarter: a polynomial gives e^r, and each bit of m multiplies by
    its power.
    """
    fraction_bits = bits - 1 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    remainder = (values & (quarter - 1)) - quarter
    result = _exponential_of_fraction(multipliers.saturating_shift_left(remainder, integer_bits, bits), bits)
    whole = _wrapped(remainder - values, bits)
    for power, factor in multipliers.EXPONENTIALS.items():
        if integer_bits > power:
            is_set = whole & (1 << (fraction_bits + power)) != 0
            result = np.where(is_set, multipliers.doubling_high_multiply(result, _narrowed(factor, bits), bits), result)
    if integer_bits > _BITS_OF_LIMIT:
        result = np.where(values < _LIMIT << fraction_bits, 0, result)
    return np.where(values == 0, (1 << (bits - 1)) - 1, result)


def _exponential_of_fraction(values: multipliers.IntArray, bits: int) -> multipliers.IntArray:
    """e^a for a in [-1/4, 0): with x = a + 1/8, e^-1/8 * (1 + x + x^2/2 + x^3/6 + x^4/24)."""

    def product(a: multipliers.IntArray | int, b: multipliers.IntArray | int) -> multipliers.IntArray:
        return multipliers.doubling_high_multiply(a, b, bits)

    x = _wrapped(values + (1 << (bits - 4)), bits)
    x2 = product(x, x)
    x3, x4 = product(x2, x), product(x2, x2)
    # (x^4/4 + x^3) / 3 + x^2, halved, is the sum of the three higher terms.
    cubic = product(
        _wrapped(multipliers.rounding_shift_right(x4, 2) + x3, bits), _narrowed(multipliers.ONE_THIRD, bits)
    )
    higher = multipliers.rounding_shift_right(_wrapped(cubic + x2, bits), 1)
    constant = _narrowed(multipliers.EXPONENTIAL_OF_EIGHTH, bits)
    return np.minimum(constant + product(constant, _wrapped(x + higher, bits)), (1 << (bits - 1)) - 1)


def _narrowed(number: int, bits: int) -> int:
    """The upper `bits` of a 32-bit constant, rounded."""
    return int(multipliers.rounding_shift_right(number, 32 - bits))


def _wrapped(values: multipliers.IntArray, bits: int = 16) -> multipliers.IntArray:
    """As registers of so many bits hold it."""
    return ((values + (1 << (bits - 1))) & ((1 << bits) - 1)) - (1 << (bits - 1))


MAX_INTEGER_BITS = 6
"""Bits before the point that an argument may have."""

_ONE, _HALF = 2**15 - 1, 2**14
# Of Q2.13.
_ONE_Q2 = 1 << 13
_NEWTON_STEPS = 3


class FixedPointFunction(StrEnum):
    """A function of fixed-point numbers."""

    SIGMOID = "sigmoid"
    """1 / (1 + e^-x)."""
    TANH = "tanh"
    """Hyperbolic tangent."""


@lru_cache
def fixed_point_table(function: FixedPointFunction, integer_bits: int) -> NDArray[np.int16]:
    """int16[65536]: the function of each argument x at x + 2^15, for `integer_bits` in 0..6."""
    values = np.arange(-(2**15), 2**15, dtype=np.int64)
    table = _FUNCTIONS[function](values, integer_bits).astype(np.int16)
    table.setflags(write=False)
    return table


def _sigmoid(values: multipliers.IntArray, integer_bits: int) -> multipliers.IntArray:
    """gemmlowp ``logistic``; `values` are Q`integer_bits`, results Q0.15."""
    magnitude = np.where(values > 0, values, _wrapped(-values))
    positive = multipliers.saturating_shift_left(_inverse(exponential(_wrapped(-magnitude), integer_bits, 16)), 1, 16)
    return np.where(values == 0, _HALF, np.where(values > 0, positive, _ONE - positive))


def _tanh(values: multipliers.IntArray, integer_bits: int) -> multipliers.IntArray:
    """gemmlowp ``tanh``: (1 - e) / (1 + e) of e = e^(2x) for x <= 0; 2x is x with its point moved."""
    negative = np.where(values < 0, values, _wrapped(-values))
    inverse = _inverse(exponential(negative, integer_bits + 1, 16))
    result = multipliers.saturating_shift_left(_wrapped(inverse - _ONE_Q2), 2, 16)
    return np.where(values == 0, 0, np.where(values < 0, _wrapped(-result), result))


def _inverse(values: multipliers.IntArray) -> multipliers.IntArray:
    """1 / d of d = (1 + x) / 2 for Q0.15 x in [0, 1], in Q2.13, by three Newton steps."""
    half = (values + _ONE + 1) // 2
    x = _wrapped(_narrowed(multipliers.NEWTON_CONSTANT, 16) + _product(half, _narrowed(multipliers.NEWTON_SLOPE, 16)))
    for _ in range(_NEWTON_STEPS):
        rest = _wrapped(_ONE_Q2 - _product(half, x))
        x = _wrapped(x + multipliers.saturating_shift_left(_product(x, rest), 2, 16))
    return x


def _product(a: multipliers.IntArray | int, b: multipliers.IntArray | int) -> multipliers.IntArray:
    return multipliers.doubling_high_multiply(a, b, 16)


_FUNCTIONS: Mapping[FixedPointFunction, Callable[[multipliers.IntArray, int], multipliers.IntArray]] = {
    FixedPointFunction.SIGMOID: _sigmoid,
    FixedPointFunction.TANH: _tanh,
}
