"""The arithmetic of softmax as scalar bodies, in the bits of `qdialect.reference.softmax`."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.lowering.kernels.reduction import Fold
from qdialect.lowering.text.kernel_text import Tensor
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math.fixed_point import INT32_MAX, INT32_MIN, NEWTON_CONSTANT, NEWTON_SLOPE

_NEWTON_STEPS = 3
# Of a sum with z leading zeros, 12 - z integer bits; the result keeps 8 bits below the point of a Q0.31 product.
_SHIFT_WITHOUT_ZEROS = 12 + 31 - 8


def emit_entry(body: Body, table: Tensor, quantized: Value, largest: Value) -> Value:
    """``table[largest - quantized]`` of 256 entries, from stored values of which `largest` is the larger one."""
    top, own = (body.cast("arith.extui", value, "i32") for value in (largest, quantized))
    distance = body.cast("arith.index_cast", body.subtract(top, own), "index")
    return body.extract(table, distance)


def sum_of_entries(table: Tensor) -> Fold:
    """The sum of ``table[largest - quantized]`` over (value, largest); float32 sums keep the order of the elements."""
    element = table.element

    def emit(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        return body.add(acc, emit_entry(body, table, values[0], values[1]))

    return Fold(element, 0, emit, lambda body, a, b: body.add(a, b), is_ordered=element == "f32")


def emit_reciprocal(body: Body, total: Value) -> Value:
    """1 / `total` as Q0.31 beside a power of two, i32, by three Newton steps on d, `total` scaled to [1/2, 1)."""
    zeros = body.unary("math.ctlz", total)
    normal = body.binary("arith.shli", total, zeros)
    half = body.binary("arith.shrui", normal, body.constant(1, "i32"))
    denominator = body.cast("arith.extui", half, "i64")
    slope = doubling_high(body, denominator, body.constant(NEWTON_SLOPE, "i64"))
    x = body.add(body.constant(NEWTON_CONSTANT, "i64"), slope)
    for _ in range(_NEWTON_STEPS):
        product = doubling_high(body, denominator, x)
        error = body.subtract(body.constant(2**29, "i64"), product)
        x = body.add(x, shift_left(body, doubling_high(body, x, error), 2))
    return body.cast("arith.trunci", shift_left(body, x, 1), "i32")


def emit_shift(body: Body, total: Value) -> Value:
    """By how many bits the product with the reciprocal of `total` is shifted right, i32."""
    shift = body.constant(_SHIFT_WITHOUT_ZEROS, "i32")
    return body.subtract(shift, body.unary("math.ctlz", total))


def emit_share(body: Body, exponential: Value, reciprocal: Value, shift: Value) -> Value:
    """The stored value of ``exponential / total`` in Q0.8, saturated; all operands are i32."""
    e, r, n = (body.cast("arith.extui", value, "i64") for value in (exponential, reciprocal, shift))
    product = doubling_high(body, e, r)
    one = body.constant(1, "i64")
    # Nothing here is negative: adding one half before the shift rounds ties away from zero.
    half = body.binary("arith.shli", one, body.subtract(n, one))
    quantized = body.binary("arith.shrui", body.add(product, half), n)
    return body.narrow(body.binary("arith.minsi", quantized, body.constant(255, "i64")))


def doubling_high(body: Body, a: Value, b: Value) -> Value:
    """``(a * b + 2^30) >> 31``; saturation is out of reach, as no operand is -2^31."""
    nudged = body.add(body.multiply(a, b), body.constant(2**30, "i64"))
    return body.binary("arith.shrsi", nudged, body.constant(31, "i64"))


def shift_left(body: Body, value: Value, shift: int) -> Value:
    """``value << shift`` (i64), saturated to 32 bits."""
    shifted = body.binary("arith.shli", value, body.constant(shift, "i64"))
    low, high = (body.constant(bound, "i64") for bound in (INT32_MIN, INT32_MAX))
    return body.clamp(shifted, low, high)
