"""Derive the polynomials of pieces in `qdialect.arithmetic.float32`.

A piece has an anchor: a number c of float32 where f(c) is a number of float32 too, up to 2^-8 of its last bit.  It lies
near the harmonic mean of the ends: at both of them f(c) then differs from f by about the same share of f.  The
polynomial P of least relative error in f stands for (f(c + t) - f(c)) / t, in the first piece for f(x) / x - 1; its
coefficients are rounded to float32.

    .venv/bin/python tools/float_pieces.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np

if __name__ == "__main__":
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from qdialect.arithmetic.float32.machine import ENTRIES
from tools.float_coefficients import Function, erf_over_x, minimax

_DIGITS = 40
_POINTS = 16
_NEIGHBOURS = 400
_NEAR, _CLOSE = Decimal("0.004"), Decimal("0.02")
"""Parts of a last bit: how near to a number of float32 an anchor shall be, and must be."""
_HALVINGS = 60


@dataclass(frozen=True)
class Piecewise:
    """A function on the pieces of `offset` + `scale` * x that the bits above the lowest `shift` tell apart."""

    name: str
    function: Function
    scale: float
    offset: float
    shift: int
    high: float
    degree: int

    def edges(self) -> list[Decimal]:
        """Where pieces begin and end; the first begins at 0."""
        first = int(np.float32(self.offset).view(np.int32)) >> self.shift
        starts = (np.int32((first + i) << self.shift).view(np.float32) for i in range(1, ENTRIES + 1))
        ends = ((Decimal(float(start)) - Decimal(self.offset)) / Decimal(self.scale) for start in starts)
        return [Decimal(0), *(end for end in ends if end < Decimal(self.high)), Decimal(str(self.high))]


def pieces() -> list[Piecewise]:
    """The functions, by the names of their tables."""
    return [Piecewise("ERF", _erf, 0.94921875, 1.25, 20, 3.95, 5)]


def _erf(x: Decimal) -> Decimal:
    return x * erf_over_x(x * x)


def derive_piece(wanted: Piecewise, index: int) -> tuple[list[float], float]:
    """The row of a piece as float32 numbers, and the largest error of its polynomial relative to the function."""
    with localcontext() as context:
        context.prec = _DIGITS
        low, high = wanted.edges()[index : index + 2]
        center, value = (Decimal(0), Decimal(0)) if index == 0 else anchor(wanted.function, low, high)
        own = 1 if index == 0 else 0
        points = _grid(low - center, high - center, wanted.degree)
        right = [wanted.function(center + t) for t in points]
        exact = wanted.function(center) if index else Decimal(0)
        quotients = [(y - exact) / t - own for y, t in zip(right, points, strict=True)]
        weights = [abs(t / y) for y, t in zip(right, points, strict=True)]
        terms = [_rounded(one) for one in minimax(points, quotients, weights, wanted.degree - 1)]
        sums = [sum((c * t**n for n, c in enumerate(terms)), Decimal(0)) for t in points]
        error = max(abs((s - q) * w) for s, q, w in zip(sums, quotients, weights, strict=True))
        return [float(center), float(value), *map(float, reversed(terms))], float(error)


def _grid(low: Decimal, high: Decimal, degree: int) -> list[Decimal]:
    """Chebyshev's points, none of them 0."""
    count, middle, radius = _POINTS * (degree + 2), (low + high) / 2, (high - low) / 2
    cosines = [Decimal(math.cos(math.pi * (n + 0.5) / count)).quantize(Decimal("1e-12")) for n in range(count)]
    least = Decimal("1e-7")
    return [point if abs(point) > least else least for point in (middle - radius * one for one in cosines)]


def anchor(function: Function, low: Decimal, high: Decimal) -> tuple[Decimal, Decimal]:
    """(c, f(c)) near the mean: a neighbour of it, or where the function is too flat for that, one by its value."""
    middle = _rounded(2 * low * high / (low + high))
    found = _first(function, (middle + n * _unit(middle) for n in _outwards(_NEIGHBOURS)))
    if found[0] > _CLOSE:
        found = min(found, _first(function, _by_value(function, middle, low, high)))
    return found[1], _rounded(function(found[1]))


def _first(function: Function, candidates: Iterator[Decimal]) -> tuple[Decimal, Decimal]:
    """(distance in parts of a last bit, c) of the first candidate that is near, else of the nearest."""
    best = (Decimal(1), Decimal(0))
    for center in candidates:
        value = function(center)
        best = min(best, (abs(value - _rounded(value)) / _unit(_rounded(value)), center))
        if best[0] < _NEAR:
            break
    return best


def _by_value(function: Function, middle: Decimal, low: Decimal, high: Decimal) -> Iterator[Decimal]:
    value = _rounded(function(middle))
    for n in _outwards(40):
        wanted, below, above = value + n * _unit(value * Decimal("0.9999999")), low * Decimal("0.8"), high
        if not function(below) < wanted < min(function(above), Decimal(1)):
            continue
        for _ in range(_HALVINGS):
            between = (below + above) / 2
            below, above = (between, above) if function(between) < wanted else (below, between)
        yield _rounded(below)


def _outwards(count: int) -> Iterator[int]:
    """0, 1, -1, 2, -2, ..."""
    yield 0
    for n in range(1, count):
        yield from (n, -n)


def _rounded(number: Decimal) -> Decimal:
    return Decimal(float(np.float32(float(number))))


def _unit(number: Decimal) -> Decimal:
    """The distance to the next number of float32."""
    return Decimal(float(np.spacing(np.float32(float(number)))))


def main() -> None:
    """Print every table, with its largest error as a power of two."""
    for wanted in pieces():
        rows = [derive_piece(wanted, index) for index in range(len(wanted.edges()) - 1)]
        print(f"# Largest error: 2^{math.log2(max(error for _, error in rows)):.1f}.")
        print(f"{wanted.name} = (")
        for row, _ in rows:
            print(f"    ({', '.join(f'{number:.9g}' for number in row)}),")
        print(")")


if __name__ == "__main__":
    main()
