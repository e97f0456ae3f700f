"""The arithmetic of softmax and of fixed-point inverse roots as scalar bodies, in the bits of the reference."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.arithmetic.multipliers import INT32_MAX, INT32_MIN, NEWTON_CONSTANT, NEWTON_SLOPE
from qdialect.lowering.qnn_to_linalg.kernels.reduction import Fold
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Tensor
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

# The arithmetic of softmax as scalar bodies, in the bits of `qdialect.reference.qnn_evaluators`.

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
    """1 / `total` as Q0.31 and a power of two, i32, by three Newton steps on d, `total` scaled to [1/2, 1)."""
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


# The fixed-point inverse square root as a scalar body, in the bits of `qdialect.arithmetic.fixed_point_functions`.

_ONE, _THREE_HALVES, _HALF_ROOT = 1 << 28, 3 << 27, 1518500250
_ROOT_STEPS = 5
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
    for _ in range(_ROOT_STEPS):
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
