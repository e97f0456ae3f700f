"""Computes functions of fixed-point numbers by integers alone: sigmoid, tanh and the inverse square root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.multipliers import (
    EXPONENTIAL_OF_EIGHTH,
    EXPONENTIALS,
    NEWTON_CONSTANT,
    NEWTON_SLOPE,
    ONE_THIRD,
    IntArray,
    doubling_high_multiply,
    rounding_shift_right,
    saturating_shift_left,
)

# The fixed-point inverse square root of TFLite's RSQRT and L2_NORMALIZATION.

# Of Q3.28: one, one and a half.  Of Q0.31: the square root of one half.
_ROOT_ONE, _THREE_HALVES, _HALF_ROOT = 1 << 28, 3 << 27, 1518500250
_ROOT_NEWTON_STEPS = 5
_LARGEST = 2**31 - 1


def inverse_root(value: int) -> tuple[int, int]:
    """(q, shift) with 1 / sqrt(value) ~ q * 2^(-31 - shift), for 0 <= value < 2^31 (TFLite GetInvSqrtQuantized...).

    Pairs of bits normalize the value to [1/4, 1) of Q3.28, where five Newton steps x * (3/2 - a/2 * x^2) start from
    one.  Zero and one both give the largest Q31 number.
    """
    if value <= 1:
        return _LARGEST, 0
    shift = 11
    while value >= 1 << 29:
        value //= 4
        shift += 1
    pairs = (31 - value.bit_length()) // 2 - 1
    shift -= pairs
    fraction = (value << (2 * pairs)) >> 1
    half = int(rounding_shift_right(fraction, 1))
    x = _ROOT_ONE
    for _ in range(_ROOT_NEWTON_STEPS):
        cube = _shifted(_root_product(_root_product(x, x), x), 6)
        x = _shifted(_root_product(_THREE_HALVES, x) - _root_product(half, cube), 3)
    q = _root_product(x, _HALF_ROOT)
    return (q, shift) if shift >= 0 else (q << -shift, 0)


def _root_product(a: int, b: int) -> int:
    return int(doubling_high_multiply(a, b))


def _shifted(value: int, bits: int) -> int:
    return int(saturating_shift_left(value, bits))


# Sigmoid and hyperbolic tangent of 16-bit fixed-point numbers, in the bits of gemmlowp's fixedpoint.h.
#
# A number Qm.n has m bits before its point and n = 15 - m behind it.

MAX_INTEGER_BITS = 6
"""Bits before the point that an argument may have."""

_ONE, _HALF = 2**15 - 1, 2**14
# Of Q2.13.
_ONE_Q2 = 1 << 13
_NEWTON_STEPS = 3
# Below -2^5 the exponential is zero; arguments of fewer integer bits stay above.
_BITS_OF_LIMIT, _LIMIT = 5, -32


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


def _sigmoid(values: IntArray, integer_bits: int) -> IntArray:
    """gemmlowp ``logistic``; `values` are Q`integer_bits`, results Q0.15."""
    magnitude = np.where(values > 0, values, _wrapped(-values))
    positive = saturating_shift_left(_inverse(_exponential(_wrapped(-magnitude), integer_bits)), 1, 16)
    return np.where(values == 0, _HALF, np.where(values > 0, positive, _ONE - positive))


def _tanh(values: IntArray, integer_bits: int) -> IntArray:
    """gemmlowp ``tanh``: (1 - e) / (1 + e) of e = e^(2x) for x <= 0; 2x is x with its point moved."""
    negative = np.where(values < 0, values, _wrapped(-values))
    inverse = _inverse(_exponential(negative, integer_bits + 1))
    result = saturating_shift_left(_wrapped(inverse - _ONE_Q2), 2, 16)
    return np.where(values == 0, 0, np.where(values < 0, _wrapped(-result), result))


def _exponential(values: IntArray, integer_bits: int) -> IntArray:
    """gemmlowp ``exp_on_negative_values``: e^x in Q0.15.

    The fraction below a quarter goes to a polynomial; each further bit of -x stands for one factor.
    """
    fraction_bits = 15 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    fraction = (values & (quarter - 1)) - quarter
    result = _exponential_of_fraction(saturating_shift_left(fraction, integer_bits, 16))
    remainder = _wrapped(fraction - values)
    for power, factor in EXPONENTIALS.items():
        if integer_bits > power:
            is_set = remainder & (1 << (fraction_bits + power)) != 0
            result = np.where(is_set, _product(result, _word(factor)), result)
    if integer_bits > _BITS_OF_LIMIT:
        result = np.where(values < _LIMIT << fraction_bits, 0, result)
    return np.where(values == 0, _ONE, result)


def _exponential_of_fraction(values: IntArray) -> IntArray:
    """e^x of Q0.15 in [-1/4, 0): a Taylor polynomial of degree 4 around -1/8."""
    x = _wrapped(values + (1 << 12))
    x2 = _product(x, x)
    x3, x4 = _product(x2, x), _product(x2, x2)
    cubic = _product(_wrapped(rounding_shift_right(x4, 2) + x3), _word(ONE_THIRD))
    rest = rounding_shift_right(_wrapped(cubic + x2), 1)
    constant = _word(EXPONENTIAL_OF_EIGHTH)
    return np.minimum(constant + _product(constant, _wrapped(x + rest)), _ONE)


def _inverse(values: IntArray) -> IntArray:
    """1 / d of d = (1 + x) / 2 for Q0.15 x in [0, 1], in Q2.13, by three Newton steps."""
    half = (values + _ONE + 1) // 2
    x = _wrapped(_word(NEWTON_CONSTANT) + _product(half, _word(NEWTON_SLOPE)))
    for _ in range(_NEWTON_STEPS):
        rest = _wrapped(_ONE_Q2 - _product(half, x))
        x = _wrapped(x + saturating_shift_left(_product(x, rest), 2, 16))
    return x


def _product(a: IntArray | int, b: IntArray | int) -> IntArray:
    return doubling_high_multiply(a, b, 16)


def _word(number: int) -> int:
    """The upper half of a 32-bit constant, rounded."""
    return int(rounding_shift_right(number, 16))


def _wrapped(values: IntArray) -> IntArray:
    """As 16-bit registers hold it."""
    return ((values + 2**15) & (2**16 - 1)) - 2**15


_FUNCTIONS: Mapping[FixedPointFunction, Callable[[IntArray, int], IntArray]] = {
    FixedPointFunction.SIGMOID: _sigmoid,
    FixedPointFunction.TANH: _tanh,
}
