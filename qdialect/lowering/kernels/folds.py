"""What reductions compute: the folds themselves, and the exact division of a sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qdialect.lowering.kernels.reduction import Fold
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math import Division

_MAX_IN_FLOAT32 = 2**24


def _add_value(body: Body, acc: Value, values: Sequence[Value]) -> Value:
    return body.add(acc, body.cast("arith.extui", values[0], "i32"))


def _largest_value(body: Body, acc: Value, values: Sequence[Value]) -> Value:
    return body.binary("arith.maxui", acc, values[0])


def _smallest_value(body: Body, acc: Value, values: Sequence[Value]) -> Value:
    return body.binary("arith.minui", acc, values[0])


SUM = Fold("i32", 0, _add_value, lambda body, a, b: body.add(a, b))
"""The sum of stored quantized values."""

MAX = Fold("i8", 0, _largest_value, lambda body, a, b: body.binary("arith.maxui", a, b))
"""The largest stored value."""

I16_SUM = Fold(
    "i32",
    0,
    lambda body, acc, values: body.add(acc, body.cast("arith.extsi", values[0], "i32")),
    lambda body, a, b: body.add(a, b),
)
"""The sum of 16-bit values."""

I16_MAX = Fold(
    "i16",
    -(2**15),
    lambda body, acc, values: body.binary("arith.maxsi", acc, values[0]),
    lambda body, a, b: body.binary("arith.maxsi", a, b),
)
"""The largest 16-bit value."""

MIN = Fold("i8", -1, _smallest_value, lambda body, a, b: body.binary("arith.minui", a, b))
"""The smallest stored value, from 255 as a signless byte."""


def _add_product(body: Body, total: Value, values: Sequence[Value]) -> Value:
    return body.multiply_add(values[0], values[1], total)


def _add_rounded_product(body: Body, total: Value, values: Sequence[Value]) -> Value:
    return body.add(total, body.multiply(values[0], values[1]))


F32_PRODUCTS = Fold("f32", 0.0, _add_product, lambda body, a, b: body.add(a, b), is_ordered=True)
"""The sum of products of two f32 operands: fused multiply-adds in order."""

F32_ROUNDED_PRODUCTS = replace(F32_PRODUCTS, emit=_add_rounded_product)
"""The same, each product rounded before it is added."""


def _extreme(op: str) -> Fold:
    """The extreme of f32 values and 0."""

    def join(body: Body, acc: Value, value: Value) -> Value:
        return body.binary(op, acc, value)

    return Fold("f32", 0.0, lambda body, acc, values: join(body, acc, values[0]), join)


F32_MAXIMUM = _extreme("arith.maximumf")
"""The largest of f32 values and 0."""

F32_MINIMUM = _extreme("arith.minimumf")
"""The minimum of f32 values and 0."""


def quotient_float(largest: int, maximum: int) -> str:
    """The float in which a total of up to `maximum` values of magnitude `largest` is divided exactly by their count.

    With a = q * b + r and r < b, the true quotient lies 1/b or more below q + 1, and a float rounds up to q + 1 only
    from within (q + 1) * 2^-24 of it (2^-53 for doubles).  As b * (q + 1) <= a + b, where a has half a count more for
    rounding, float32 serves while (largest + 2) * count is at most 2^24.
    """
    return "f32" if (largest + 2) * maximum <= _MAX_IN_FLOAT32 else "f64"


def emit_quotient(body: Body, total: Value, count: Value, division: Division, float_: str) -> Value:
    """``total / count`` (i32) rounded as `division` says, by a division of floats (see `quotient_float`).

    The quotient of the magnitudes is that of two floats, rounded, then truncated.
    """
    zero = body.constant(0, "i32")
    is_negative = body.compare("slt", total, zero)
    negated = body.subtract(zero, total)
    magnitude = body.select(is_negative, negated, total)
    if division is not Division.TRUNCATE:
        nudge = body.binary("arith.shrui", count, body.constant(1, "i32"))
        magnitude = body.add(magnitude, nudge)
    dividend, divisor = (body.cast("arith.sitofp", value, float_) for value in (magnitude, count))
    whole = body.cast("arith.fptosi", body.divide(dividend, divisor), "i32")
    return body.select(is_negative, body.subtract(zero, whole), whole)
