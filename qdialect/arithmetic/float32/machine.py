"""Defines the abstract machine that float32 algorithms are written for, and sums in its order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import machine
from qdialect.arithmetic.machine import FloatMachine, V

# Every operation is rounded once, a fused multiply-add too.  NumPy is one machine, vector code another: as both do the
# same operations in the same order, their results have the same bits on every CPU.

ROUNDER = 1.5 * 2.0**23
"""Added to a number below 2^22 it pushes the fraction out, rounded half to even; the low bits then are an integer."""
EXPONENT_BIAS = 127
FRACTION_BITS = 23
ENTRIES = 16
"""Of a table: as many as a vector register has."""


SCALED = "qnn.scaled"
"""On a product with a power of two that is in range: an instruction may compute it from the exponent."""

_F, _I = "f32", "i32"


class Machine(FloatMachine[V]):
    """Operations on f32 values `V`."""

    def __init__(self, ops: machine.Machine[V]) -> None:
        super().__init__(ops, _F)

    def absolute(self, a: V) -> V:
        """|a|."""
        return self._ops.unary("math.absf", a)

    def with_sign(self, size: V, a: V) -> V:
        """`size` with the sign of a."""
        return self._ops.binary("math.copysign", size, a)

    def power_of_two(self, biased: V) -> V:
        """2^k of `biased` = k + 127 + `ROUNDER`, for k in [-126, 127]."""
        return self._exponent(self._bits(biased))

    def scale(self, value: V, biased: V) -> V:
        """value * 2^k, rounded once, of `biased` = k + 254 + `ROUNDER`, for k in [-252, 254] and a value in (1/2, 2).

        It is the product with two powers; the one with the first is exact. NaN stays, whatever k.
        """
        ops, bits = self._ops, self._bits(biased)
        half = ops.binary("arith.shrsi", bits, ops.constant(1, _I))
        first = self.multiply(value, self._exponent(half))
        return ops.binary("arith.mulf", first, self._exponent(ops.subtract(bits, half)), attribute=SCALED)

    def at_least_scaled(self, x: V, bound: float) -> V:
        """max(x, bound) of an x from which all of a product by `scale` is computed; NaN stays.

        For x = `bound` and below, without this bound too, k is -151 or less.
        """
        limit = self.constant(bound)
        return self._ops.select(self._ops.compare("olt", x, limit), limit, x)

    def split(self, a: V, minimum: float) -> tuple[V, V, V]:
        """(k, f, 2^-k) with a = 2^k * f and f in [minimum, 2 * minimum), for a > 0.

        a must be above 2^-125 * `minimum`; k is in [-125, 126].
        """
        ops = self._ops
        first = ops.constant(int(np.float32(minimum).view(np.int32)), _I)
        bits, count = self._bits(a), ops.constant(FRACTION_BITS, _I)
        exponent = ops.binary("arith.shrsi", ops.subtract(bits, first), count)
        shifted = ops.binary("arith.shli", exponent, count)
        power = ops.subtract(ops.constant(EXPONENT_BIAS << FRACTION_BITS, _I), shifted)
        fraction = ops.cast("arith.bitcast", ops.subtract(bits, shifted), _F)
        return ops.cast("arith.sitofp", exponent, _F), fraction, ops.cast("arith.bitcast", power, _F)

    def entries(self, a: V, shift: int, tables: Sequence[Sequence[float]]) -> list[V]:
        """The entry of each of the `tables` that the four bits of `a` above the `shift` lowest point to."""
        ops = self._ops
        shifted = ops.binary("arith.shrsi", self._bits(a), ops.constant(shift, _I))
        wrapped = ops.binary("arith.andi", shifted, ops.constant(ENTRIES - 1, _I))
        index = ops.cast("arith.index_cast", wrapped, "index")
        return [ops.extract(ops.table(np.array(table, np.float32)), index) for table in tables]

    def _bits(self, a: V) -> V:
        return self._ops.cast("arith.bitcast", a, _I)

    def _exponent(self, biased: V) -> V:
        """The number whose exponent the low bits of an integer are."""
        shifted = self._ops.binary("arith.shli", biased, self._ops.constant(FRACTION_BITS, _I))
        return self._ops.cast("arith.bitcast", shifted, _F)


NUMPY: Machine[Any] = Machine(machine.NUMPY)
"""On float32 arrays."""


def polynomial(m: Machine[V], x: V, coefficients: Sequence[float]) -> V:
    """The polynomial with these coefficients, the highest power first, by Horner's rule."""
    value = m.constant(coefficients[0])
    for coefficient in coefficients[1:]:
        value = m.multiply_add(value, x, m.constant(coefficient))
    return value


def at_most(m: Machine[V], x: V, bound: float) -> V:
    """min(x, bound); NaN stays."""
    limit = m.constant(bound)
    return m.where_less(limit, x, limit, x)


def at_least(m: Machine[V], x: V, bound: float) -> V:
    """max(x, bound); NaN stays."""
    limit = m.constant(bound)
    return m.where_less(x, limit, limit, x)


PARTIAL_SUMS = 16
"""Of a row; a number of every vector's lanes divides it."""


def partial_sums(shape: Sequence[int], axes: Sequence[int]) -> int:
    """How many partial sums a sum over `axes` (ascending) has: `PARTIAL_SUMS` along a last axis of twice as many."""
    is_along_rows = len(axes) > 0 and axes[-1] == len(shape) - 1
    return PARTIAL_SUMS if is_along_rows and shape[-1] >= 2 * PARTIAL_SUMS else 1


def row_sum(data: NDArray[Any], axes: Sequence[int], *, in_order: bool = False) -> NDArray[np.float32]:
    """The sum over `axes` (ascending), which are dropped; every addition is rounded, and starts from zero.

    Without partial sums, or `in_order`, the terms are added in row-major order.  With P of them, term i of a row of n
    joins partial sum i modulo P while i < n - n mod P; the partial sums are added in order, the other terms too, then
    both sums.
    """
    count = 1 if in_order else partial_sums(data.shape, axes)
    kept = [i for i in range(data.ndim) if i not in axes]
    moved = data.transpose([*kept, *axes]).astype(np.float32)
    shape = moved.shape[: len(kept)]
    if count == 1:
        return _in_order(moved.reshape(*shape, -1))
    rows = moved.reshape(*shape, -1, moved.shape[-1])
    whole = rows.shape[-1] // count * count
    groups = rows[..., :whole].reshape(*shape, -1, count)
    total = _in_order(_in_order(np.moveaxis(groups, -1, -2)))
    if whole == rows.shape[-1]:
        return total
    return total + _in_order(rows[..., whole:].reshape(*shape, -1))


def _in_order(terms: NDArray[np.float32]) -> NDArray[np.float32]:
    """The sum of the last axis, from zero: a sum of minus zeros is plus zero."""
    if terms.shape[-1] == 0:
        return np.zeros(terms.shape[:-1], np.float32)
    return np.add.accumulate(terms, axis=-1, dtype=np.float32)[..., -1] + np.float32(0)
