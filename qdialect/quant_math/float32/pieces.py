"""Functions by polynomials of pieces, which are told apart by some bits of a float32 number.

Where |x| is in piece i, with t = x - c_i exact and f(c_i) = a_i up to 2^-8 of a last bit,

    f(x) = a_i + t P_i(t)        f(x) = x + x P_0(x) in the first piece,

so that the sum, which is rounded once, has nearly all of the error: t P_i(t) is small beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from qdialect.quant_math.float32.machine import ENTRIES, Machine, V, at_most


@dataclass(frozen=True)
class Pieces:
    """A function from 0 on; a row is (c, a, coefficients of P with the highest power first) of a piece."""

    scale: float
    offset: float
    """`offset` + `scale` * x is the number whose bits tell the piece of x."""
    shift: int
    """How many low bits of it do not."""
    rows: Sequence[Sequence[float]]
    """At most `ENTRIES`; the anchor a of the second is above all numbers of the first piece, and the least but 0."""

    @cached_property
    def tables(self) -> list[tuple[float, ...]]:
        """The columns of the rows as tables, each row where the bits of its numbers point to."""
        return tables(self.rows, self.offset, self.shift)


def piecewise(m: Machine[V], x: V, pieces: Pieces) -> V:
    """The function of x >= 0; NaN stays."""
    told = m.multiply_add(x, m.constant(pieces.scale), m.constant(pieces.offset))
    center, anchor, value, *coefficients = m.entries(told, pieces.shift, pieces.tables)
    t = m.subtract(x, center)
    for coefficient in coefficients:
        value = m.multiply_add(value, t, coefficient)
    # x itself in the first piece, whose anchor is 0; elsewhere the anchor, which is no less than the second one.
    near = at_most(m, x, pieces.rows[1][1])
    return m.multiply_add(value, t, m.where_less(anchor, near, near, anchor))


def tables(rows: Sequence[Sequence[float]], offset: float, shift: int) -> list[tuple[float, ...]]:
    """The columns of at most `ENTRIES` rows, each row where the bits above the lowest `shift` point to.

    The first row is that of `offset`, the next that of the numbers whose bits come next.
    """
    start = int(np.float32(offset).view(np.int32)) >> shift
    filled = [*rows, *[rows[-1]] * (ENTRIES - len(rows))]
    return list(zip(*(filled[(entry - start) % ENTRIES] for entry in range(ENTRIES)), strict=True))
