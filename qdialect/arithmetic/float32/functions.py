"""Computes exponentials, logarithms, erf and tanh in float32 operations and fused multiply-adds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from qdialect.arithmetic.float32 import machine

# Functions by polynomials of pieces, which are told apart by some bits of a float32 number.
#
# Where |x| is in piece i, with t = x - c_i exact and f(c_i) = a_i up to 2^-8 of a last bit,
#
#     f(x) = a_i + t P_i(t)        f(x) = x + x P_0(x) in the first piece,
#
# so that the sum, which is rounded once, has nearly all of the error: t P_i(t) is small in comparison.


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


def piecewise(m: machine.Machine[machine.V], x: machine.V, pieces: Pieces) -> machine.V:
    """The function of x >= 0; NaN stays."""
    told = m.multiply_add(x, m.constant(pieces.scale), m.constant(pieces.offset))
    center, anchor, value, *coefficients = m.entries(told, pieces.shift, pieces.tables)
    t = m.subtract(x, center)
    for coefficient in coefficients:
        value = m.multiply_add(value, t, coefficient)
    # x itself in the first piece, whose anchor is 0; elsewhere the anchor, which is no less than the second one.
    near = machine.at_most(m, x, pieces.rows[1][1])
    return m.multiply_add(value, t, m.where_less(anchor, near, near, anchor))


def tables(rows: Sequence[Sequence[float]], offset: float, shift: int) -> list[tuple[float, ...]]:
    """The columns of at most `ENTRIES` rows, each row where the bits above the lowest `shift` point to.

    The first row is that of `offset`, the next that of the numbers whose bits come next.
    """
    start = int(np.float32(offset).view(np.int32)) >> shift
    filled = [*rows, *[rows[-1]] * (machine.ENTRIES - len(rows))]
    return list(zip(*(filled[(entry - start) % machine.ENTRIES] for entry in range(machine.ENTRIES)), strict=True))


# (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2; the largest error is 2^-25.8 of e^r - 1.
EXPONENTIAL = (0.00138825225, 0.00836651307, 0.0416672006, 0.166665435, 0.49999997)
# ln 2 in two parts; the first has 15 bits, so that its product with any exponent is exact.
LN2_HIGH = 0.693145751953125
LN2_LOW = 1.428606765330187e-06
_EXP_LOWEST, _EXP_HIGHEST = -105.0, 89.0
"""Beyond them e^x rounds to 0 and infinity; from the lower one down the exponent k is -151 or less."""


def exp(m: machine.Machine[machine.V], x: machine.V) -> machine.V:
    """``2^k (1 + r (1 + r P(r)))`` for x = k ln 2 + r; 0 below, infinity above, NaN stays.

    The last product is the only one that may be subnormal, so that such numbers are rounded once as well.
    """
    x = machine.at_most(m, m.at_least_scaled(x, _EXP_LOWEST), _EXP_HIGHEST)
    biased, r = reduced(m, x, 2 * machine.EXPONENT_BIAS)
    return m.scale(exponential(m, r), biased)


def reduced(
    m: machine.Machine[machine.V], x: machine.V, bias: int, near: machine.V | None = None
) -> tuple[machine.V, machine.V]:
    """(k + `bias` + `ROUNDER`, r) with x = k ln 2 + r; k is the whole number nearest to `near` / ln 2, or x / ln 2."""
    rounder = m.constant(machine.ROUNDER + bias)
    biased = m.multiply_add(x if near is None else near, m.constant(1 / math.log(2)), rounder)
    k = m.subtract(biased, rounder)
    r = m.multiply_add(k, m.constant(-LN2_HIGH), x)
    return biased, m.multiply_add(k, m.constant(-LN2_LOW), r)


def exponential(m: machine.Machine[machine.V], r: machine.V) -> machine.V:
    """e^r for |r| <= ln(2) / 2."""
    one = m.constant(1.0)
    return m.multiply_add(m.multiply_add(machine.polynomial(m, r, EXPONENTIAL), r, one), r, one)


# (2^r - 1) / r for |r| <= 1/2; the largest error is 2^-26.0 of 2^r.
POWER_OF_TWO = (0.000154762965, 0.00134002685, 0.00961800385, 0.055503279, 0.240226507, 0.693147182)
_EXP2_LOWEST, _EXP2_HIGHEST = -151.0, 129.0
"""Beyond them 2^x rounds to 0 and infinity; from the lower one down the exponent k is -151 or less."""


def exp2(m: machine.Machine[machine.V], x: machine.V) -> machine.V:
    """``2^k (1 + r P(r))`` for x = k + r; 0 below, infinity above, NaN stays."""
    x = machine.at_most(m, m.at_least_scaled(x, _EXP2_LOWEST), _EXP2_HIGHEST)
    rounder = m.constant(machine.ROUNDER + 2 * machine.EXPONENT_BIAS)
    biased = m.add(x, rounder)
    r = m.subtract(x, m.subtract(biased, rounder))
    value = m.multiply_add(machine.polynomial(m, r, POWER_OF_TWO), r, m.constant(1.0))
    return m.scale(value, biased)


# (e^r - 1 - r) / r^2 for |r| <= 0.42; the largest error is 2^-26.9 of e^r - 1.
EXPM1 = (0.000198476861, 0.00139647292, 0.00833345484, 0.0416660123, 0.166666657, 0.5)
_EXPM1_LOWEST, _EXPM1_HIGHEST = -18.0, 89.0
"""Beyond them e^x - 1 rounds to -1 and infinity."""
_NEAR = 0.42
"""Below it k is 0: what 2^k - 1 and 2^k g have in common would be lost."""
_ODD, _EXPM1_LARGE = 16.0, 18.4
"""Between them 2^(k-1) - 1/2 has more bits than float32; beyond them 1/2 is less than a quarter of a last bit."""
_LINEAR = 2.0**-25
"""Below it e^x - 1 rounds to x."""


def expm1(m: machine.Machine[machine.V], x: machine.V) -> machine.V:
    """``2 (2^(k-1) g + (2^(k-1) - 1/2))`` with g = e^r - 1 for x = k ln 2 + r; accurate near zero too.

    2^(k-1) is a number of float32 where 2^k is not.  Where x is large, the result is e^x.
    """
    limited = machine.at_most(m, machine.at_least(m, x, _EXPM1_LOWEST), _EXPM1_HIGHEST)
    size = m.absolute(x)
    biased, r = reduced(
        m, limited, machine.EXPONENT_BIAS - 1, m.where_less(size, m.constant(_NEAR), m.constant(0.0), limited)
    )
    half = m.power_of_two(biased)
    grown = m.multiply_add(machine.polynomial(m, r, EXPM1), m.multiply(r, r), r)
    value = m.multiply_add(half, grown, m.subtract(half, m.constant(0.5)))
    odd = m.add(m.multiply_add(half, grown, m.constant(-0.5)), half)
    value = m.where_less(m.constant(_ODD), x, odd, value)
    value = m.where_less(m.constant(_EXPM1_LARGE), x, m.multiply(exponential(m, r), half), value)
    return m.where_less(size, m.constant(_LINEAR), x, m.add(value, value))


def expm1_below_zero(m: machine.Machine[machine.V], x: machine.V) -> machine.V:
    """`expm1` of x <= 0 and of NaN, with the same bits; of greater numbers it is any number.

    Here |x| < c is -c < x, and neither e^x - 1 of a large x nor the highest bound is needed.
    """
    limited = machine.at_least(m, x, _EXPM1_LOWEST)
    biased, r = reduced(
        m, limited, machine.EXPONENT_BIAS - 1, m.where_less(m.constant(-_NEAR), x, m.constant(0.0), limited)
    )
    half = m.power_of_two(biased)
    grown = m.multiply_add(machine.polynomial(m, r, EXPM1), m.multiply(r, r), r)
    value = m.multiply_add(half, grown, m.subtract(half, m.constant(0.5)))
    return m.where_less(m.constant(-_LINEAR), x, x, m.add(value, value))


# (log(1 + m) - m + m^2 / 2) / m^3 for m in [-1/4, 1/2]; the largest error is 2^-27.3 of log(1 + m).
LOGARITHM = (-0.0461680964, 0.105828181, -0.13186878, 0.144676924, -0.166437432, 0.199910909, -0.250001937, 0.333334476)
MIN_FRACTION = 0.75
"""A number is 2^k (1 + m) with 1 + m in [0.75, 1.5), so that k is 0 for those near 1."""
_SMALLEST = 2.0**-125
_UPWARDS, _LOG_STEPS = 2.0**24, 24.0


def log(m: machine.Machine[machine.V], x: machine.V) -> machine.V:
    """``k ln 2 + log(1 + m)`` for x = 2^k (1 + m); minus infinity at zero, NaN below."""
    zero, smallest = m.constant(0.0), m.constant(_SMALLEST)
    # Subnormal numbers are made larger by a power of two.
    normal = m.where_less(x, smallest, m.multiply(x, m.constant(_UPWARDS)), x)
    k, fraction, _ = m.split(normal, MIN_FRACTION)
    k = m.where_less(x, smallest, m.subtract(k, m.constant(_LOG_STEPS)), k)
    value = joined(m, k, m.subtract(fraction, m.constant(1.0)))
    ended = m.where_less(x, zero, m.constant(math.nan), m.constant(-math.inf))
    return m.where_less(x, m.constant(math.inf), m.where_less(zero, x, value, ended), x)


def joined(m: machine.Machine[machine.V], k: machine.V, fraction: machine.V) -> machine.V:
    """``k ln 2 + log(1 + fraction)`` for a fraction in [-1/4, 1/2]."""
    square = m.multiply(fraction, fraction)
    value = m.multiply_add(machine.polynomial(m, fraction, LOGARITHM), fraction, m.constant(-0.5))
    value = m.multiply_add(value, square, fraction)
    return m.multiply_add(k, m.constant(math.log(2)), value)


_LOG1P_LARGE = 2.0**64
"""Above it 1 + x is x, and log(1 + x) that of x made smaller by a power of two, whose exponent has a reciprocal."""
_DOWNWARDS, _LOG1P_STEPS = 2.0**-32, 32.0
_BELOW_THREE_HALVES = 1.5 - 2.0**-23


def log1p(m: machine.Machine[machine.V], x: machine.V) -> machine.V:
    """``k ln 2 + log(1 + f)`` with f = x 2^-k + (2^-k - 1), which loses nothing of a small x."""
    one, minus_one = m.constant(1.0), m.constant(-1.0)
    large = m.constant(_LOG1P_LARGE)
    smaller = m.where_less(large, x, m.multiply(x, m.constant(_DOWNWARDS)), x)
    total = m.add(smaller, one)
    # The number below 1/2 would lose its last bit were it halved: its sum, a tie, is kept below where k becomes 1.
    total = m.where_less(x, m.constant(0.5), machine.at_most(m, total, _BELOW_THREE_HALVES), total)
    k, _, power = m.split(total, MIN_FRACTION)
    fraction = m.multiply_add(smaller, power, m.subtract(power, one))
    value = joined(m, m.where_less(large, x, m.add(k, m.constant(_LOG1P_STEPS)), k), fraction)
    ended = m.where_less(x, minus_one, m.constant(math.nan), m.constant(-math.inf))
    value = m.where_less(minus_one, x, value, ended)
    value = m.where_less(x, m.constant(math.inf), value, x)
    return m.where_less(m.absolute(x), m.constant(_LINEAR), x, value)


# Eighths of octaves of 1.25 + 0.949 x below 5; the largest error is 2^-26.2 of erf(x).
ERF = Pieces(
    0.94921875,
    1.25,
    20,
    (
        (0, 0, 0.110897928, 0.000301000109, -0.376142532, 2.89515555e-07, 0.128379166),
        (0.175582677, 0.196106523, 0.0920492262, 0.0940730199, -0.342208892, -0.192109078, 1.09412277),
        (0.316049695, 0.345097333, 0.0591637082, 0.150427714, -0.272361428, -0.322722763, 1.02111459),
        (0.451499581, 0.476862699, 0.0194388963, 0.179264098, -0.181684256, -0.415508926, 0.920287073),
        (0.585273087, 0.592160225, -0.0188447982, 0.180654451, -0.0840855613, -0.468865305, 0.801105738),
        (0.718294919, 0.69028604, -0.0486259684, 0.158528656, 0.00716481544, -0.483820707, 0.673568666),
        (0.902994275, 0.798407197, -0.0686736554, 0.102744125, 0.104981929, -0.450833619, 0.499265909),
        (1.17055655, 0.902160048, -0.0548844784, 0.0149075752, 0.166281283, -0.335566461, 0.286670983),
        (1.4365921, 0.9578107, -0.0212221332, -0.0382111594, 0.149342924, -0.205824956, 0.143271446),
        (1.70181143, 0.983903706, 0.00417720014, -0.0491105504, 0.099553518, -0.106068052, 0.0623258166),
        (1.96653378, 0.994582474, 0.0128531754, -0.0365924872, 0.0529802181, -0.0464120097, 0.0236008428),
        (2.23096108, 0.998395324, 0.0108274072, -0.0201785974, 0.0232192129, -0.0173529573, 0.00777838985),
        (2.49512148, 0.999582291, 0.00610099128, -0.00883862469, 0.00852149539, -0.00556880888, 0.00223201397),
        (2.7591908, 0.999904633, 0.00262674247, -0.00317173125, 0.00264366833, -0.00153757981, 0.000557328691),
        (3.13847876, 0.99999094, 0.000519366353, -0.000559034757, 0.000373208284, -0.000185981888, 5.94904559e-05),
        (3.65332246, 0.999999762, 3.03611378e-05, -2.88633382e-05, 1.57114719e-05, -6.53192365e-06, 1.80012455e-06),
    ),
)
_ERF_ONE = 3.95
"""From here on erf rounds to 1."""


def erf(m: machine.Machine[machine.V], x: machine.V) -> machine.V:
    """Polynomials of pieces of |x|, with the sign of x."""
    return m.with_sign(piecewise(m, machine.at_most(m, m.absolute(x), _ERF_ONE), ERF), x)


# (tanh(t) / t - 1) / t^2 by t^2; the largest error is 2^-29.9 of tanh(c + t).
NEAR = (0.0179524533, -0.053495083, 0.133313119, -0.333333075)
# (c, tanh(c), 1 - tanh(c)^2) for quarters of octaves of 0.625 + x below 10.
ROWS = (
    (0, 0, 1),
    (0, 0, 1),
    (0.300000578, 0.291313142, 0.915136635),
    (0.46875146, 0.437189966, 0.808864951),
    (0.72916919, 0.622556806, 0.612423003),
    (0.984378576, 0.754955113, 0.430042773),
    (1.23750281, 0.844741881, 0.286411166),
    (1.58654606, 0.91961807, 0.154302612),
    (2.09559965, 0.970194638, 0.0587223656),
    (2.60118842, 0.989053309, 0.0217735525),
    (3.10501218, 0.99598968, 0.00800455641),
    (3.81048012, 0.999020338, 0.00195836416),
    (4.82375717, 0.999870837, 0.000258310261),
    (5.83285522, 0.999982834, 3.43319807e-05),
    (6.83255816, 0.999997675, 4.64915865e-06),
    (8.31776619, 0.999999881, 2.38418536e-07),
)
OFFSET, SHIFT = 0.625, 21
_TANH_ONE = 9.25
"""From here on tanh rounds to 1."""
_TABLES = tables(ROWS, OFFSET, SHIFT)


def tanh(m: machine.Machine[machine.V], x: machine.V) -> machine.V:
    """``tanh(c) + (1 - tanh(c)^2) tanh(t) / (1 + tanh(c) tanh(t))`` for |x| = c + t, with the sign of x.

    The sum has nearly all of the error: its second part is less than a quarter of the number, or all of it.
    """
    size = machine.at_most(m, m.absolute(x), _TANH_ONE)
    center, anchor, rest = m.entries(m.add(size, m.constant(OFFSET)), SHIFT, _TABLES)
    t = m.subtract(size, center)
    square = m.multiply(t, t)
    near = m.multiply_add(m.multiply(square, machine.polynomial(m, square, NEAR)), t, t)
    moved = m.divide(m.multiply(rest, near), m.multiply_add(anchor, near, m.constant(1.0)))
    return m.with_sign(m.add(anchor, moved), x)
