"""The fixed-point inverse square root as a scalar body, in the bits of `qdialect.quant_math.inverse_root`."""

from __future__ import annotations

from qdialect.lowering.kernel_text import Body
from qdialect.lowering.kernels.normalize import doubling_high, shift_left

_ONE, _THREE_HALVES, _HALF_ROOT = 1 << 28, 3 << 27, 1518500250
_NEWTON_STEPS = 5
_LARGEST = 2**31 - 1


def emit_root(body: Body, total: str) -> str:
    """The Q0.31 mantissa of 1 / sqrt(`total`), i32."""
    value, shift = _normalized(body, total)
    pairs = _pairs(body, value)
    twice = body.binary("arith.shli", pairs, body.constant(1, "i32"), "i32")
    fraction = body.binary("arith.shli", value, twice, "i32")
    fraction = body.binary("arith.shrui", fraction, body.constant(1, "i32"), "i32")
    up = body.binary("arith.addi", fraction, body.constant(1, "i32"), "i32")
    half = body.cast("arith.extui", body.binary("arith.shrui", up, body.constant(1, "i32"), "i32"), "i32", "i64")
    x = body.constant(_ONE, "i64")
    for _ in range(_NEWTON_STEPS):
        cube = shift_left(body, doubling_high(body, doubling_high(body, x, x), x), 6)
        slope = doubling_high(body, body.constant(_THREE_HALVES, "i64"), x)
        x = shift_left(body, body.binary("arith.subi", slope, doubling_high(body, half, cube), "i64"), 3)
    root = body.cast("arith.trunci", doubling_high(body, x, body.constant(_HALF_ROOT, "i64")), "i64", "i32")
    # Where the shift would be negative the mantissa moves instead.
    shift = body.binary("arith.subi", shift, pairs, "i32")
    zero = body.constant(0, "i32")
    left = body.binary("arith.maxsi", body.binary("arith.subi", zero, shift, "i32"), zero, "i32")
    return _unless_small(body, total, body.binary("arith.shli", root, left, "i32"), _LARGEST)


def emit_root_shift(body: Body, total: str) -> str:
    """By how many places a product with that mantissa is shifted right, i32."""
    value, shift = _normalized(body, total)
    shift = body.binary("arith.subi", shift, _pairs(body, value), "i32")
    return _unless_small(body, total, body.binary("arith.maxsi", shift, body.constant(0, "i32"), "i32"), 0)


def emit_rounded_shift(body: Body, value: str, shift: str) -> str:
    """``value / 2^shift`` with ties away from zero, i64."""
    one, zero = body.constant(1, "i64"), body.constant(0, "i64")
    mask = body.binary("arith.subi", body.binary("arith.shli", one, shift, "i64"), one, "i64")
    is_negative = body.op(f"arith.cmpi slt, {value}, {zero} : i64")
    threshold = body.binary("arith.shrui", mask, one, "i64")
    above = body.binary("arith.addi", threshold, one, "i64")
    threshold = body.op(f"arith.select {is_negative}, {above}, {threshold} : i64")
    rest = body.binary("arith.andi", value, mask, "i64")
    rounds_up = body.op(f"arith.cmpi sgt, {rest}, {threshold} : i64")
    whole = body.binary("arith.shrsi", value, shift, "i64")
    return body.binary("arith.addi", whole, body.op(f"arith.select {rounds_up}, {one}, {zero} : i64"), "i64")


def _normalized(body: Body, total: str) -> tuple[str, str]:
    """`total`, at least 2 and below 2^29, and the places that this leaves: 11, or 12 where it was divided by four."""
    two = body.constant(2, "i32")
    value = body.binary("arith.maxsi", total, two, "i32")
    is_large = body.op(f"arith.cmpi sge, {value}, {body.constant(1 << 29, 'i32')} : i32")
    quarter = body.binary("arith.shrui", value, two, "i32")
    value = body.op(f"arith.select {is_large}, {quarter}, {value} : i32")
    shift = body.op(f"arith.select {is_large}, {body.constant(12, 'i32')}, {body.constant(11, 'i32')} : i32")
    return value, shift


def _pairs(body: Body, value: str) -> str:
    """Pairs of bits by which `value` is shifted up: (leading zeros - 1) / 2 - 1."""
    one = body.constant(1, "i32")
    free = body.binary("arith.subi", body.op(f"math.ctlz {value} : i32"), one, "i32")
    return body.binary("arith.subi", body.binary("arith.shrui", free, one, "i32"), one, "i32")


def _unless_small(body: Body, total: str, value: str, small: int) -> str:
    is_small = body.op(f"arith.cmpi sle, {total}, {body.constant(1, 'i32')} : i32")
    return body.op(f"arith.select {is_small}, {body.constant(small, 'i32')}, {value} : i32")
