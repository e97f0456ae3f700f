"""Powers of integers to an exponent that is known; products wrap around."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.frontends.planning.plain import Arithmetic


def whole_power(s: Arithmetic, x: ir.Value, exponent: int) -> ir.Value:
    """``x ** exponent`` for an `exponent` of at least 0, by squaring.

    There is one product for each binary digit of the exponent, and one more for each that is 1.
    """
    found: ir.Value | None = None
    for bit in f"{exponent:b}":
        squared = None if found is None else s.op("arith.muli", found, found)
        found = squared if bit == "0" else x if squared is None else s.op("arith.muli", squared, x)
    return s.op("arith.ori", s.op("arith.andi", x, 0), 1) if found is None else found
