"""Defines the abstract machine that float32 algorithms are written for, and the machine on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.transcendental import NumpyArithmetic

# What the algorithms of this package are written for: something that computes on float32 values.
#
# Every operation is rounded once, a fused multiply-add too.  NumPy is one machine, vector code another: as both do the
# same operations in the same order, their results have the same bits on every CPU.

V = TypeVar("V")

ROUNDER = 1.5 * 2.0**23
"""Added to a number below 2^22 it pushes the fraction out, rounded half to even; the low bits then are an integer."""
EXPONENT_BIAS = 127
FRACTION_BITS = 23
ENTRIES = 16
"""Of a table: as many as a vector register has."""


class Machine(Protocol[V]):
    """Operations on float32 values `V`, each rounded half to even."""

    def constant(self, value: float) -> V:
        """A value that is `value`, rounded to float32, everywhere."""
        ...

    def add(self, a: V, b: V) -> V:
        """a + b."""
        ...

    def subtract(self, a: V, b: V) -> V:
        """a - b."""
        ...

    def multiply(self, a: V, b: V) -> V:
        """a * b."""
        ...

    def divide(self, a: V, b: V) -> V:
        """a / b."""
        ...

    def multiply_add(self, a: V, b: V, c: V) -> V:
        """a * b + c, rounded once."""
        ...

    def absolute(self, a: V) -> V:
        """|a|."""
        ...

    def with_sign(self, size: V, a: V) -> V:
        """`size` with the sign of a."""
        ...

    def where_less(self, a: V, b: V, then: V, other: V) -> V:
        """`then` where a < b, else `other`; no NaN is less than anything."""
        ...

    def power_of_two(self, biased: V) -> V:
        """2^k of `biased` = k + 127 + `ROUNDER`, for k in [-126, 127]."""
        ...

    def scale(self, value: V, biased: V) -> V:
        """value * 2^k, rounded once, of `biased` = k + 254 + `ROUNDER`, for k in [-252, 254] and a value in (1/2, 2).

        It is the product with two powers; the one with the first is exact. NaN stays, whatever k.
        """
        ...

    def at_least_scaled(self, x: V, bound: float) -> V:
        """max(x, bound) of an x from which all of a product by `scale` is computed; NaN stays.

        For x = `bound` and below, without this bound too, k is -151 or less.
        """
        ...

    def split(self, a: V, minimum: float) -> tuple[V, V, V]:
        """(k, f, 2^-k) with a = 2^k * f and f in [minimum, 2 * minimum), for a > 0.

        a must be above 2^-125 * `minimum`; k is in [-125, 126].
        """
        ...

    def entries(self, a: V, shift: int, tables: Sequence[Sequence[float]]) -> list[V]:
        """The entry of each of the `tables` that the four bits of `a` above the `shift` lowest point to."""
        ...


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


# The machine of this package on NumPy arrays.

F32Array = NDArray[np.float32]
F64Array = NDArray[np.float64]

# The bits of a float64 number that a float32 number lacks, and those of a number halfway between two float32 numbers.
_LOST_BITS = np.int64(2**29 - 1)
_HALF = np.int64(2**28)
_SMALLEST_NORMAL = 2.0**-126


def multiply_add(a: F32Array, b: F32Array, c: F32Array) -> F32Array:
    """a * b + c of float32 arrays that broadcast, rounded once, as the instruction of a CPU does.

    The product is exact in float64.  Where its sum with c is rounded there to a tie of float32 numbers, on whose side
    the exact sum lies is no longer seen, and only there the sum is rounded to odd instead.
    """
    product = np.multiply(a, b, dtype=np.float64)
    addend = np.asarray(c, dtype=np.float64)
    total = np.asarray(product + addend)
    is_tie = _may_be_tie(total)
    if is_tie.any():
        factors, addends = (np.broadcast_to(part, total.shape)[is_tie] for part in (product, addend))
        total[is_tie] = _sum_to_odd(factors, addends)
    return total.astype(np.float32)


def _may_be_tie(total: F64Array) -> NDArray[np.bool_]:
    """Whether a number lies halfway between two float32 numbers, or is below those that have all of their bits."""
    is_half = (total.view(np.int64) & _LOST_BITS) == _HALF
    is_small = np.abs(total) < _SMALLEST_NORMAL
    return is_half | (is_small & (total != 0)) if is_small.any() else is_half


def _sum_to_odd(product: F64Array, addend: F64Array) -> F64Array:
    """The sum, rounded to odd: where it is inexact, the last bit is set.

    From that bit rounding to float32 sees on which side of a tie the sum lies.  Twice 24 bits and 2 are enough for that
    (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
    """
    total = product + addend
    # What the sum has lost, exactly (Knuth's TwoSum).
    of_addend = total - product
    lost = (product - (total - of_addend)) + (addend - of_addend)
    bits = total.view(np.int64)
    is_inexact = np.isfinite(lost) & (lost != 0) & (bits & 1 == 0)
    # A bit towards what was lost: away from zero where the signs agree.
    towards = np.where((lost > 0) == (total > 0), 1, -1)
    return (bits + np.where(is_inexact, towards, 0)).view(np.float64)


class NumpyMachine(NumpyArithmetic):
    """Float32 arrays."""

    def constant(self, value: float) -> Any:
        """See `Machine`."""
        return np.float32(value)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """See `Machine`."""
        return multiply_add(a, b, c)

    def absolute(self, a: Any) -> Any:
        """See `Machine`."""
        return np.abs(a)

    def with_sign(self, size: Any, a: Any) -> Any:
        """See `Machine`."""
        return np.copysign(size, a)

    def power_of_two(self, biased: Any) -> Any:
        """See `Machine`."""
        return (_bits(biased) << FRACTION_BITS).view(np.float32)

    def scale(self, value: Any, biased: Any) -> Any:
        """See `Machine`."""
        bits = _bits(biased)
        half = bits >> 1
        first, second = half << FRACTION_BITS, (bits - half) << FRACTION_BITS
        return value * first.view(np.float32) * second.view(np.float32)

    def at_least_scaled(self, x: Any, bound: float) -> Any:
        """See `Machine`."""
        return at_least(self, x, bound)

    def split(self, a: Any, minimum: float) -> tuple[Any, Any, Any]:
        """See `Machine`."""
        first = int(_bits(np.float32(minimum)))
        bits = _bits(a)
        exponent = (bits - first) >> FRACTION_BITS
        shifted = exponent << FRACTION_BITS
        power = ((EXPONENT_BIAS << FRACTION_BITS) - shifted).view(np.float32)
        return exponent.astype(np.float32), (bits - shifted).view(np.float32), power

    def entries(self, a: Any, shift: int, tables: Sequence[Sequence[float]]) -> list[Any]:
        """See `Machine`."""
        index = (_bits(a) >> shift) % ENTRIES
        return [np.array(table, dtype=np.float32)[index] for table in tables]


def _bits(a: Any) -> Any:
    return np.asarray(a, dtype=np.float32).view(np.int32)


# Sums of float32 values in an order that vectors can follow.

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
