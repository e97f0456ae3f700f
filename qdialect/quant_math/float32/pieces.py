"""Functions by polynomials of pieces, which are told apart by the leading bits of a float32 number.

Where |x| is in piece i, with t = x - c_i exact and f(c_i) = a_i up to 2^-8 of a last bit,

    f(x) = a_i + t P_i(t)        f(x) = x + x P_0(x) in the first piece,

so that the sum, which is rounded once, has nearly all of the error: t P_i(t) is small beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from qdialect.quant_math.float32.machine import ENTRIES, Machine, V, at_least


@dataclass(frozen=True)
class Pieces:
    """A function from 0 on; a row is (c, a, coefficients of P with the highest power first) of a piece."""

    shift: int
    """Bits of a number that do not tell its piece."""
    low: float
    """What smaller numbers are taken for, where the piece is looked up: a number of the first piece."""
    first: float
    """Where the first piece ends."""
    rows: Sequence[Sequence[float]]
    """At most `ENTRIES`."""

    @cached_property
    def tables(self) -> list[tuple[float, ...]]:
        """The columns of the rows as tables, each row where the leading bits of its numbers point to."""
        start = int(np.float32(self.low).view(np.int32)) >> self.shift
        filled = [*self.rows, *[self.rows[-1]] * (ENTRIES - len(self.rows))]
        return list(zip(*(filled[(entry - start) % ENTRIES] for entry in range(ENTRIES)), strict=True))


def piecewise(m: Machine[V], x: V, pieces: Pieces) -> V:
    """The function of x >= 0; NaN stays."""
    entries = m.entries(at_least(m, x, pieces.low), pieces.shift, pieces.tables)
    center, anchor, value, *coefficients = entries
    t = m.subtract(x, center)
    for coefficient in coefficients:
        value = m.multiply_add(value, t, coefficient)
    return m.multiply_add(value, t, m.where_less(x, m.constant(pieces.first), x, anchor))
