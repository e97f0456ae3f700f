"""The arithmetic of softmax as scalar bodies, in the bits of `qdialect.reference.softmax`."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.lowering.kernel_text import Body
from qdialect.lowering.kernels.reduction import Fold

_BOUNDS = (-(2**31), 2**31 - 1)
# Newton's first guess, 48/17 - 32/17 * d, in Q2.29.
_NEWTON_CONSTANT = round(48 / 17 * 2**29)
_NEWTON_SLOPE = round(-32 / 17 * 2**29)
_NEWTON_STEPS = 3
# Of a sum with z leading zeros, 12 - z integer bits; the result keeps 8 bits below the point of a Q0.31 product.
_SHIFT_WITHOUT_ZEROS = 12 + 31 - 8


def emit_entry(body: Body, table: str, element: str, quantized: str, largest: str) -> str:
    """``table[largest - quantized]`` of 256 entries, from stored quantized values with code <= largest."""
    top, own = (body.cast("arith.extui", value, "i8", "i32") for value in (largest, quantized))
    distance = body.cast("arith.index_cast", body.binary("arith.subi", top, own, "i32"), "i32", "index")
    return body.op(f"tensor.extract {table}[{distance}] : tensor<256x{element}>")


def sum_of_entries(table: str, element: str) -> Fold:
    """The sum of ``table[largest - quantized]`` over (code, largest); float32 sums run in the order of the elements."""
    add = "arith.addi" if element == "i32" else "arith.addf"

    def emit(body: Body, acc: str, values: Sequence[str]) -> str:
        return body.binary(add, acc, emit_entry(body, table, element, values[0], values[1]), element)

    return Fold(element, 0, emit, lambda body, a, b: body.binary(add, a, b, element), is_ordered=element == "f32")


def emit_reciprocal(body: Body, total: str) -> str:
    """1 / `total` as Q0.31 beside a power of two, i32, by three Newton steps on d, `total` scaled to [1/2, 1)."""
    zeros = body.op(f"math.ctlz {total} : i32")
    normal = body.binary("arith.shli", total, zeros, "i32")
    half = body.binary("arith.shrui", normal, body.constant(1, "i32"), "i32")
    denominator = body.cast("arith.extui", half, "i32", "i64")
    slope = doubling_high(body, denominator, body.constant(_NEWTON_SLOPE, "i64"))
    x = body.binary("arith.addi", body.constant(_NEWTON_CONSTANT, "i64"), slope, "i64")
    for _ in range(_NEWTON_STEPS):
        product = doubling_high(body, denominator, x)
        error = body.binary("arith.subi", body.constant(2**29, "i64"), product, "i64")
        x = body.binary("arith.addi", x, shift_left(body, doubling_high(body, x, error), 2), "i64")
    return body.cast("arith.trunci", shift_left(body, x, 1), "i64", "i32")


def emit_shift(body: Body, total: str) -> str:
    """By how many places the product with the reciprocal of `total` is shifted right, i32."""
    shift = body.constant(_SHIFT_WITHOUT_ZEROS, "i32")
    return body.binary("arith.subi", shift, body.op(f"math.ctlz {total} : i32"), "i32")


def emit_share(body: Body, exponential: str, reciprocal: str, shift: str) -> str:
    """The stored code of ``exponential / total`` in Q0.8, saturated; all operands are i32."""
    e, r, n = (body.cast("arith.extui", value, "i32", "i64") for value in (exponential, reciprocal, shift))
    product = doubling_high(body, e, r)
    one = body.constant(1, "i64")
    # Nothing here is negative: adding one half before the shift rounds ties away from zero.
    half = body.binary("arith.shli", one, body.binary("arith.subi", n, one, "i64"), "i64")
    quantized = body.binary("arith.shrui", body.binary("arith.addi", product, half, "i64"), n, "i64")
    return body.narrow(body.binary("arith.minsi", quantized, body.constant(255, "i64"), "i64"), "i64")


def doubling_high(body: Body, a: str, b: str) -> str:
    """``(a * b + 2^30) >> 31``; saturation is out of reach, as no operand is -2^31."""
    nudged = body.binary("arith.addi", body.binary("arith.muli", a, b, "i64"), body.constant(2**30, "i64"), "i64")
    return body.binary("arith.shrsi", nudged, body.constant(31, "i64"), "i64")


def shift_left(body: Body, value: str, shift: int) -> str:
    """``value << shift`` (i64), saturated to 32 bits."""
    shifted = body.binary("arith.shli", value, body.constant(shift, "i64"), "i64")
    low, high = (body.constant(bound, "i64") for bound in _BOUNDS)
    return body.clamp(shifted, low, high, "i64")
