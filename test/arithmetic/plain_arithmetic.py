"""The formulas again, one number at a time in Python integers and exact fractions: what vectorized code must equal."""

import math
import struct
from fractions import Fraction

from qdialect.arithmetic import Rounding

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def clamp(value: int, lo: int, hi: int) -> int:
    return min(max(value, lo), hi)


def half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def half_away(value: Fraction) -> int:
    return half_up(value) if value >= 0 else -half_up(-value)


def float32(value: float) -> float:
    """The nearest float32.  A double result of one operation on float32 values rounds to it without a double-rounding
    error, since 53 >= 2 * 24 + 2."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def doubling_high_multiply(a: int, b: int) -> int:
    """As the C++ states it: a nudge by sign and a division that truncates."""
    if a == b == INT32_MIN:
        return INT32_MAX
    product = a * b
    nudged = product + (2**30 if product >= 0 else 1 - 2**30)
    return abs(nudged) // 2**31 * (1 if nudged >= 0 else -1)


def inverse_root(value: int) -> tuple[int, int]:
    """As the C++ states it: (q, shift) with 1 / sqrt(value) ~ q * 2^(-31 - shift)."""
    if value <= 1:
        return INT32_MAX, 0
    shift = 11
    while value >= 1 << 29:
        value //= 4
        shift += 1
    pairs = (31 - value.bit_length()) // 2 - 1
    shift -= pairs
    fraction = (value << (2 * pairs)) >> 1
    half, x = half_away(Fraction(fraction, 2)), 1 << 28
    for _ in range(5):
        cube = clamp(doubling_high_multiply(doubling_high_multiply(x, x), x) << 6, INT32_MIN, INT32_MAX)
        rest = doubling_high_multiply(3 << 27, x) - doubling_high_multiply(half, cube)
        x = clamp(rest << 3, INT32_MIN, INT32_MAX)
    q = doubling_high_multiply(x, 1518500250)
    return (q, shift) if shift >= 0 else (q << -shift, 0)


def reciprocal(total: int) -> tuple[int, int]:
    """As the C++ states it: Q0.31 of 1 / total but for a power of two, and the leading zeros of the total."""
    zeros = 32 - total.bit_length()
    half = ((total << zeros) - 2**31 + INT32_MAX + 1) >> 1
    x = round(48 / 17 * 2**29) + doubling_high_multiply(half, round(-32 / 17 * 2**29))
    for _ in range(3):
        error = (1 << 29) - doubling_high_multiply(half, x)
        x += clamp(doubling_high_multiply(x, error) << 2, INT32_MIN, INT32_MAX)
    return clamp(x << 1, INT32_MIN, INT32_MAX), zeros


def multiply(x: int, q: int, e: int, rounding: Rounding) -> int:
    """x * q * 2^(e - 31) clamped to int32."""
    exact = Fraction(x * q) * Fraction(2) ** (e - 31)
    if rounding is Rounding.FIXED64_UP:
        return clamp(half_up(exact), INT32_MIN, INT32_MAX)
    if rounding is Rounding.FIXED64_NEAREST:
        return clamp(half_away(exact), INT32_MIN, INT32_MAX)
    if rounding is Rounding.FIXED64_DOUBLE:
        return clamp(apply_scale_32(x, q, 31 - e), INT32_MIN, INT32_MAX)
    shifted = clamp(x << max(e, 0), INT32_MIN, INT32_MAX)
    return half_away(Fraction(doubling_high_multiply(shifted, q), 2 ** max(-e, 0)))


def apply_scale_32(value: int, multiplier: int, shift: int) -> int:
    """As the specification of TOSA states it, with double_round; a shift below 1 is none."""
    if shift < 1:
        return value * multiplier << -shift
    nudge = 1 << (shift - 1)
    if shift > 31:
        nudge += 2**30 if value >= 0 else -(2**30)
    return (value * multiplier + nudge) >> shift


def round_float(value: float, rounding: Rounding) -> float:
    """`value`, a float32, to an integer; infinities stay."""
    if math.isinf(value):
        return value
    if rounding in (Rounding.F32_RNE_ZP_LAST, Rounding.F32_RNE_ZP_FIRST):
        return round(value)
    if rounding is Rounding.F32_UP_ZP_FIRST:
        return math.floor(float32(value + 0.5))
    return half_away(Fraction(value))


def requantize_float(acc: int, m: float, zero_point: int, lo: int, hi: int, rounding: Rounding) -> int:
    """The float rounding modes, `m` a float32."""
    value = float32(float32(acc) * m)
    if rounding is Rounding.F32_RNE_ZP_LAST:
        return int(min(max(round_float(value, rounding) + zero_point, lo), hi))
    return int(min(max(round_float(float32(value + zero_point), rounding), lo), hi))
