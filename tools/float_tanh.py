"""Derive the table and the polynomial of `qdialect.arithmetic.float32.functions`.

Of each piece the table has a number c and tanh(c), both of float32 up to 2^-8 of the last bit, and 1 - tanh(c)^2; up to
1/4 it has those of 0.  The polynomial stands for (tanh(t) / t - 1) / t^2, weighted by what an error of tanh(t) is of
tanh(c + t) in the pieces that reach as far as t.

    .venv/bin/python tools/float_tanh.py
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np

if __name__ == "__main__":
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.float_coefficients import minimax
from tools.float_pieces import Piecewise, anchor

_DIGITS = 40
_POINTS = 200
_DEGREE = 3
_FIRST = Decimal("0.25")
"""The pieces below it are one."""
_LONGEST = Decimal("0.95")


def _tanh(x: Decimal) -> Decimal:
    grown = (2 * x).exp()
    return (grown - 1) / (grown + 1)


PIECES = Piecewise("TANH", _tanh, 1.0, 0.625, 21, 9.25, _DEGREE)

_Row = tuple[Decimal, Decimal, Decimal]


def rows() -> list[list[float]]:
    """(c, tanh(c), 1 - tanh(c)^2) of each piece."""
    with localcontext() as context:
        context.prec = _DIGITS
        return [[float(number) for number in row] for row in _rows()]


def polynomial() -> list[float]:
    """The coefficients as float32 numbers, the highest power first."""
    with localcontext() as context:
        context.prec = _DIGITS
        table, edges = _rows(), PIECES.edges()
        cosines = (Decimal(math.cos(math.pi * (n + 0.5) / _POINTS)).quantize(Decimal("1e-12")) for n in range(_POINTS))
        points = [_LONGEST * (1 - cosine) / 2 for cosine in cosines]
        shares = [(t, share) for t in points if t > Decimal("1e-3") and (share := _share(table, edges, t))]
        values = [(_tanh(t) / t - 1) / (t * t) for t, _ in shares]
        weights = [share * t * t for t, share in shares]
        terms = minimax([t * t for t, _ in shares], values, weights, _DEGREE)
        return [_rounded(term) for term in reversed(terms)]


def _rows() -> list[_Row]:
    return [_row(low, high) for low, high in zip(PIECES.edges()[:-1], PIECES.edges()[1:], strict=True)]


def _row(low: Decimal, high: Decimal) -> _Row:
    if high <= _FIRST:
        return Decimal(0), Decimal(0), Decimal(1)
    center, value = anchor(_tanh, low, high)
    return center, value, Decimal(_rounded(1 - _tanh(center) ** 2))


def _share(table: list[_Row], edges: list[Decimal], t: Decimal) -> Decimal:
    """The largest share that tanh(t) has in tanh(c + t) or tanh(c - t); 0 where no piece reaches so far."""
    found = [Decimal(0)]
    for (center, value, rest), low, high in zip(table, edges[:-1], edges[1:], strict=True):
        for moved in (t, -t):
            if low <= center + moved <= high:
                part = rest * _tanh(moved) / (1 + value * _tanh(moved))
                found.append(abs(part / _tanh(center + moved)))
    return max(found)


def _rounded(number: Decimal) -> float:
    return float(np.float32(float(number)))


def main() -> None:
    """Print both."""
    print(f"POLYNOMIAL = ({', '.join(f'{number:.9g}' for number in polynomial())})")
    for row in rows():
        print(f"    ({', '.join(f'{number:.9g}' for number in row)}),")


if __name__ == "__main__":
    main()
