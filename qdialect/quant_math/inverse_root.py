"""The fixed-point inverse square root of TFLite's RSQRT and L2_NORMALIZATION."""

from __future__ import annotations

from qdialect.quant_math.fixed_point import doubling_high_multiply, rounding_shift_right, saturating_shift_left

# Of Q3.28: one, one and a half.  Of Q0.31: the square root of one half.
_ONE, _THREE_HALVES, _HALF_ROOT = 1 << 28, 3 << 27, 1518500250
_NEWTON_STEPS = 5
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
    x = _ONE
    for _ in range(_NEWTON_STEPS):
        cube = _shifted(_product(_product(x, x), x), 6)
        x = _shifted(_product(_THREE_HALVES, x) - _product(half, cube), 3)
    q = _product(x, _HALF_ROOT)
    return (q, shift) if shift >= 0 else (q << -shift, 0)


def _product(a: int, b: int) -> int:
    return int(doubling_high_multiply(a, b))


def _shifted(value: int, bits: int) -> int:
    return int(saturating_shift_left(value, bits))
