"""The algorithms of `qdialect.arithmetic.float32` as scalar bodies, in the operations of NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.arithmetic.float32 import ALGORITHMS, BELOW_ZERO
from qdialect.arithmetic.float32.machine import ENTRIES, EXPONENT_BIAS, FRACTION_BITS
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

# The arithmetic that machines on the scalars of a body share, of either precision.


class BodyArithmetic:
    """Operations that are rounded to the precision of their operands."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def add(self, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._body.add(a, b)

    def subtract(self, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._body.subtract(a, b)

    def multiply(self, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._body.multiply(a, b)

    def divide(self, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._body.divide(a, b)

    def where_less(self, a: Value, b: Value, then: Value, other: Value) -> Value:
        """See `Machine`."""
        return self._body.select(self._body.compare("olt", a, b), then, other)


SCALED = "qnn.scaled"
"""On a product with a power of two that is in range: an instruction may compute it from the exponent."""
SCALE_BOUND = "qnn.scale_bound"
"""On the lower bound of a number whose product of that kind has an exponent of -151 or less from there down."""

_F, _I = "f32", "i32"


class Float32Machine(BodyArithmetic):
    """Computes on the f32 values of a body."""

    def constant(self, value: float) -> Value:
        """See `Machine`."""
        return self._body.constant(float(np.float32(value)), _F)

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        """See `Machine`."""
        return self._body.multiply_add(a, b, c)

    def absolute(self, a: Value) -> Value:
        """See `Machine`."""
        return self._body.unary("math.absf", a)

    def with_sign(self, size: Value, a: Value) -> Value:
        """See `Machine`."""
        return self._body.binary("math.copysign", size, a)

    def power_of_two(self, biased: Value) -> Value:
        """See `Machine`."""
        return self._exponent(self._bits(biased))

    def scale(self, value: Value, biased: Value) -> Value:
        """See `Machine`."""
        bits = self._bits(biased)
        half = self._body.binary("arith.shrsi", bits, self._body.constant(1, _I))
        first = self.multiply(value, self._exponent(half))
        second = self._exponent(self._body.subtract(bits, half))
        return self._body.op(f"arith.mulf {first}, {second} {{{SCALED}}} : {_F}", _F)

    def at_least_scaled(self, x: Value, bound: float) -> Value:
        """See `Machine`."""
        limit = self.constant(bound)
        is_below = self._body.compare("olt", x, limit)
        return self._body.op(f"arith.select {is_below}, {limit}, {x} {{{SCALE_BOUND}}} : {_F}", _F)

    def split(self, a: Value, minimum: float) -> tuple[Value, Value, Value]:
        """See `Machine`."""
        body = self._body
        first = body.constant(int(np.float32(minimum).view(np.int32)), _I)
        bits, count = self._bits(a), body.constant(FRACTION_BITS, _I)
        exponent = body.binary("arith.shrsi", body.subtract(bits, first), count)
        shifted = body.binary("arith.shli", exponent, count)
        power = body.subtract(body.constant(EXPONENT_BIAS << FRACTION_BITS, _I), shifted)
        fraction = body.cast("arith.bitcast", body.subtract(bits, shifted), _F)
        return body.cast("arith.sitofp", exponent, _F), fraction, body.cast("arith.bitcast", power, _F)

    def entries(self, a: Value, shift: int, tables: Sequence[Sequence[float]]) -> list[Value]:
        """See `Machine`."""
        body = self._body
        shifted = body.binary("arith.shrsi", self._bits(a), body.constant(shift, _I))
        wrapped = body.binary("arith.andi", shifted, body.constant(ENTRIES - 1, _I))
        index = body.cast("arith.index_cast", wrapped, "index")
        return [body.extract(body.table(np.array(table, np.float32)), index) for table in tables]

    def _bits(self, a: Value) -> Value:
        return self._body.cast("arith.bitcast", a, _I)

    def _exponent(self, biased: Value) -> Value:
        """The number whose exponent the low bits of an integer are."""
        shifted = self._body.binary("arith.shli", biased, self._body.constant(FRACTION_BITS, _I))
        return self._body.cast("arith.bitcast", shifted, _F)


def emit_float32(body: Body, name: str, x: Value, *, is_below_zero: bool = False) -> Value:
    """The function of the op `name`, one of `ALGORITHMS`, of the float32 number `x`.

    Where `is_below_zero`, the results of positive numbers do not count.
    """
    algorithm = BELOW_ZERO.get(name, ALGORITHMS[name]) if is_below_zero else ALGORITHMS[name]
    return algorithm(Float32Machine(body), x)
