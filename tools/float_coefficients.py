"""Derives the polynomials of `qdialect.arithmetic.float32` and prints them as Python.

Each is the polynomial whose largest weighted error on an interval is least (Remez), its coefficients rounded to
float32. On an interval without 0 they are rounded one after another, the lowest power first, and those that are still
free make good for the rounding of those that are not; around 0 the powers that are left do not determine a best one.
All arithmetic is decimal with 60 digits, so that the result depends on no machine.

    .venv/bin/python tools/float_coefficients.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np

_DIGITS = 60
_EXCHANGES = 12
_POINTS = 48
"""Points of the grid for each coefficient."""
_TERMS = 400

Function = Callable[[Decimal], Decimal]


@dataclass(frozen=True)
class Approximation:
    """``P(x)`` near `function`(x) on [`low`, `high`]: the largest ``|(P(x) - function(x)) * weight(x)|`` is least."""

    name: str
    function: Function
    weight: Function
    low: Decimal
    high: Decimal
    degree: int


def _series(first: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """first + first * ratio(1) + first * ratio(1) * ratio(2) + ..., until a term no longer counts."""
    total = term = first
    for n in range(1, _TERMS):
        term *= ratio(n)
        total += term
        if abs(term) < abs(total) * Decimal(10) ** -_DIGITS:
            break
    return total


def exponential(x: Decimal) -> Decimal:
    """(e^x - 1 - x) / x^2 = 1/2! + x/3! + x^2/4! + ..."""
    return _series(Decimal("0.5"), lambda n: x / (n + 2))


def _relative_to_expm1(x: Decimal) -> Decimal:
    """x^2 / (e^x - 1), the factor of that quotient in e^x - 1 relative to it."""
    return x / (1 + x * exponential(x))


def _power_of_two(x: Decimal) -> Decimal:
    """(2^x - 1) / x."""
    y = x * Decimal(2).ln()
    return Decimal(2).ln() * (1 + y * exponential(y))


def erf_over_x(u: Decimal) -> Decimal:
    """erf(x) / x with u = x^2: 2 / sqrt(pi) * e^-u * (1 + 2 u / 3 + (2 u)^2 / (3 * 5) + ...)."""
    return 2 / _pi().sqrt() * (-u).exp() * _series(Decimal(1), lambda n: 2 * u / (2 * n + 1))


def _pi() -> Decimal:
    """16 atan(1/5) - 4 atan(1/239) (Machin)."""

    def arctangent(n: int) -> Decimal:
        square = Decimal(-n * n)
        powers = (Decimal(1) / ((2 * k + 1) * square**k) for k in range(_DIGITS))
        return sum(powers, Decimal(0)) / n

    return 16 * arctangent(5) - 4 * arctangent(239)


def _logarithm(m: Decimal) -> Decimal:
    """(log(1 + m) - m + m^2 / 2) / m^3 = 1/3 - m/4 + m^2/5 - ..."""
    if abs(m) < Decimal("0.01"):
        return sum(((-m) ** n / (n + 3) for n in range(_DIGITS)), Decimal(0))
    return ((1 + m).ln() - m + m * m / 2) / m**3


def approximations() -> list[Approximation]:
    """What the functions need, by the names of their tables."""
    half = Decimal(2).ln() / 2 * Decimal("1.00001")
    return [
        Approximation("EXPONENTIAL", exponential, _relative_to_expm1, -half, half, 4),
        Approximation("EXPM1", exponential, _relative_to_expm1, Decimal("-0.42"), Decimal("0.42"), 5),
        Approximation("POWER_OF_TWO", _power_of_two, lambda x: x, Decimal("-0.5"), Decimal("0.5"), 5),
        Approximation("LOGARITHM", _logarithm, lambda m: m * m, Decimal("-0.25"), Decimal("0.5"), 7),
    ]


def derive(wanted: Approximation) -> list[float]:
    """The coefficients as float32 numbers, the highest power first."""
    with localcontext() as context:
        context.prec = _DIGITS
        points = _grid(wanted)
        values, weights = [wanted.function(x) for x in points], [abs(wanted.weight(x)) for x in points]
        if wanted.low < 0:
            return [_rounded(c) for c in reversed(minimax(points, values, weights, wanted.degree))]
        known: list[Decimal] = []
        for free in range(wanted.degree, -1, -1):
            lowest = minimax(points, values, weights, free)[0]
            known.append(Decimal(_rounded(lowest)))
            values = [(value - known[-1]) / x for value, x in zip(values, points, strict=True)]
            weights = [weight * abs(x) for weight, x in zip(weights, points, strict=True)]
        return [float(coefficient) for coefficient in reversed(known)]


def largest_error(wanted: Approximation, coefficients: Sequence[float]) -> float:
    """The largest weighted error of the polynomial with these coefficients, the highest power first."""
    with localcontext() as context:
        context.prec = _DIGITS
        terms = [Decimal(coefficient) for coefficient in reversed(coefficients)]
        return max(abs(float((_value(terms, x) - wanted.function(x)) * wanted.weight(x))) for x in _grid(wanted))


def _rounded(coefficient: Decimal) -> float:
    return float(np.float32(float(coefficient)))


def _grid(wanted: Approximation) -> list[Decimal]:
    """Chebyshev's points of the interval; an even number of them, so that 0 is not among them."""
    count = _POINTS * (wanted.degree + 2)
    middle, radius = (wanted.high + wanted.low) / 2, (wanted.high - wanted.low) / 2
    cosines = [Decimal(math.cos(math.pi * (n + 0.5) / count)).quantize(Decimal("1e-12")) for n in range(count)]
    return [middle - radius * cosine for cosine in cosines]


def minimax(
    points: Sequence[Decimal], values: Sequence[Decimal], weights: Sequence[Decimal], degree: int
) -> list[Decimal]:
    """The coefficients, the lowest power first, by Remez's exchange on the grid."""
    count = degree + 2
    chosen = [round(n * (len(points) - 1) / (count - 1)) for n in range(count)]
    coefficients: list[Decimal] = []
    for _ in range(_EXCHANGES):
        rows = [
            [points[i] ** power for power in range(degree + 1)] + [(-1) ** n / weights[i], values[i]]
            for n, i in enumerate(chosen)
        ]
        *coefficients, _ = _solution(rows)
        errors = [(_value(coefficients, x) - v) * w for x, v, w in zip(points, values, weights, strict=True)]
        after = _alternating(errors, count)
        if after == chosen:
            break
        chosen = after
    return coefficients


def _alternating(errors: Sequence[Decimal], count: int) -> list[int]:
    """The largest error of each stretch of one sign, of which the `count` neighbours are kept that reach furthest."""
    extremes: list[int] = []
    for index, error in enumerate(errors):
        if extremes and (errors[extremes[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[extremes[-1]]):
                extremes[-1] = index
        else:
            extremes.append(index)
    while len(extremes) > count:
        del extremes[0 if abs(errors[extremes[0]]) < abs(errors[extremes[-1]]) else -1]
    return extremes


def _value(coefficients: Sequence[Decimal], x: Decimal) -> Decimal:
    total = Decimal(0)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def _solution(rows: list[list[Decimal]]) -> list[Decimal]:
    """The unknowns of linear equations, the right side last in each row (Gauss, largest pivot)."""
    count = len(rows)
    for column in range(count):
        pivot = max(range(column, count), key=lambda i: abs(rows[i][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for i in range(count):
            if i != column:
                factor = rows[i][column] / rows[column][column]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[column], strict=True)]
    return [rows[i][count] / rows[i][i] for i in range(count)]


def main() -> None:
    """Print every table, with its largest error as a power of two."""
    for wanted in approximations():
        coefficients = derive(wanted)
        print(f"# Largest error: 2^{math.log2(largest_error(wanted, coefficients)):.1f}.")
        print(f"{wanted.name} = (")
        for coefficient in coefficients:
            print(f"    {float(np.float32(coefficient)):.9g},")
        print(")")


if __name__ == "__main__":
    main()
