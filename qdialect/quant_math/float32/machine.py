"""What the algorithms of this package are written for: something that computes on float32 values.

Every operation is rounded once, a fused multiply-add too.  NumPy is one machine, vector code another: as both do the
same operations in the same order, their results have the same bits on every CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

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
