"""The fixed-point inverse square root as a scalar body, in the bits of `qdialect.quant_math.inverse_root`."""

from __future__ import annotations

from qdialect.lowering.kernels.normalize import doubling_high, shift_left
from qdialect.lowering.text.scalar_body import Body, Value

_ONE, _THREE_HALVES, _HALF_ROOT = 1 << 28, 3 << 27, 1518500250
_NEWTON_STEPS = 5
_LARGEST = 2**31 - 1


def emit_root(body: Body, total: Value) -> Value:
    """The Q0.31 mantissa of 1 / sqrt(`total`), i32."""
    value, shift = _normalized(body, total)
    pairs = _pairs(body, value)
    twice = body.binary("arith.shli", pairs, body.constant(1, "i32"))
    fraction = body.binary("arith.shli", value, twice)
    fraction = body.binary("arith.shrui", fraction, body.constant(1, "i32"))
    up = body.add(fraction, body.constant(1, "i32"))
    half = body.cast("arith.extui", body.binary("arith.shrui", up, body.constant(1, "i32")), "i64")
    x = body.constant(_ONE, "i64")
    for _ in range(_NEWTON_STEPS):
        cube = shift_left(body, doubling_high(body, doubling_high(body, x, x), x), 6)
        slope = doubling_high(body, body.constant(_THREE_HALVES, "i64"), x)
        x = shift_left(body, body.subtract(slope, doubling_high(body, half, cube)), 3)
    root = body.cast("arith.trunci", doubling_high(body, x, body.constant(_HALF_ROOT, "i64")), "i32")
    # Where the shift would be negative the mantissa moves instead.
    shift = body.subtract(shift, pairs)
    zero = body.constant(0, "i32")
    left = body.binary("arith.maxsi", body.subtract(zero, shift), zero)
    return _unless_small(body, total, body.binary("arith.shli", root, left), _LARGEST)


def emit_root_shift(body: Body, total: Value) -> Value:
    """By how many bits a product with that mantissa is shifted right, i32."""
    value, shift = _normalized(body, total)
    shift = body.subtract(shift, _pairs(body, value))
    return _unless_small(body, total, body.binary("arith.maxsi", shift, body.constant(0, "i32")), 0)


def emit_rounded_shift(body: Body, value: Value, shift: Value) -> Value:
    """``value / 2^shift`` with ties away from zero, i64."""
    one, zero = body.constant(1, "i64"), body.constant(0, "i64")
    mask = body.subtract(body.binary("arith.shli", one, shift), one)
    is_negative = body.compare("slt", value, zero)
    threshold = body.binary("arith.shrui", mask, one)
    above = body.add(threshold, one)
    threshold = body.select(is_negative, above, threshold)
    rest = body.binary("arith.andi", value, mask)
    rounds_up = body.compare("sgt", rest, threshold)
    whole = body.binary("arith.shrsi", value, shift)
    return body.add(whole, body.select(rounds_up, one, zero))


def _normalized(body: Body, total: Value) -> tuple[Value, Value]:
    """`total`, at least 2 and below 2^29, and the shift that this leaves: 11, or 12 where it was divided by four."""
    two = body.constant(2, "i32")
    value = body.binary("arith.maxsi", total, two)
    is_large = body.compare("sge", value, body.constant(1 << 29, "i32"))
    quarter = body.binary("arith.shrui", value, two)
    value = body.select(is_large, quarter, value)
    shift = body.select(is_large, body.constant(12, "i32"), body.constant(11, "i32"))
    return value, shift


def _pairs(body: Body, value: Value) -> Value:
    """Pairs of bits by which `value` is shifted up: (leading zeros - 1) / 2 - 1."""
    one = body.constant(1, "i32")
    free = body.subtract(body.unary("math.ctlz", value), one)
    return body.subtract(body.binary("arith.shrui", free, one), one)


def _unless_small(body: Body, total: Value, value: Value, small: int) -> Value:
    is_small = body.compare("sle", total, body.constant(1, "i32"))
    return body.select(is_small, body.constant(small, "i32"), value)
