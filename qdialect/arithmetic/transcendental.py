"""Computes exponentials, logarithms, powers, tanh, erf, sine and cosine as fixed sequences of float64 operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import machine
from qdialect.arithmetic.machine import FloatMachine, V
from qdialect.arithmetic.quantization import FloatArray

# Library functions differ between CPUs and versions in their last bits, and a compiled kernel must have the bits of the
# reference.  So each function is one algorithm over an abstract `Machine`: NumPy runs it here, and the compiler writes
# it as vector code.  Results are within a few units of float64's last bit, far finer than a float32 result can show.

ROUNDER = 1.5 * 2.0**52
"""Added to a number below 2^51 it pushes the fraction out, rounded half to even."""
_ROUNDER_BITS = int(np.float64(ROUNDER).view(np.int64))
_EXPONENT_BIAS, _FRACTION_BITS = 1023, 52
_ROOT_HALF_BITS = int(np.float64(math.sqrt(0.5)).view(np.int64))
"""Counted from these bits, those of a number have an exponent that changes at sqrt(1/2)."""
_FRACTION_MASK = 2**52 - 1
_F, _I = "f64", "i64"

_LN2 = math.log(2)
# ln 2 in two parts; the first has so many zeros at its end that its product with any exponent is exact.
_LN2_HIGH = math.ldexp(math.floor(math.ldexp(_LN2, 40)), -40)
_LN2_LOW = 7.371002565167799e-13
_MIN_EXPONENT, _MAX_EXPONENT = -708.0, 709.0
_TANH_ONE = 20.0
"""From here on tanh is 1 in float64."""
_ERF_ONE = 6.0
# (e^r - 1) / r for |r| <= ln(2) / 2, by Taylor, the highest power first.
_EXPONENTIAL = [1 / math.factorial(n) for n in range(14, 0, -1)]
# glibc's `expf` (2.27 and later): 2^(r / 32) for |r| <= 1/2, and 2^(i / 32) for each i.
_ROOTS, _ROOT_SHIFT = 32, _FRACTION_BITS - 5
_ROOT = tuple(
    float.fromhex(number) for number in ("0x1.c6af84b912394p-20", "0x1.ebfce50fac4f3p-13", "0x1.62e42ff0c52d6p-6", "1")
)
_EXPF_LOWEST, _EXPF_HIGHEST = -105.0, 89.0
"""Beyond them e^x rounds to 0 and infinity."""
# (2 atanh(s) / s - 2) / s^2 for |s| <= 0.172, by Taylor.
_ATANH = [2 / (2 * n + 1) for n in range(11, 0, -1)]
# erf(x) / x for |x| <= 1 as a polynomial of x^2, by Taylor.
_ERF_SMALL = [2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(18, -1, -1)]
# erfc(x) * e^(x^2) for 1 <= x <= 6 as a polynomial of (x - 2) / (x + 2), by Chebyshev; its error is below 1e-18.
_ERF_LARGE = [
    -4.215301054238321e-07,
    -5.322696855655786e-07,
    1.1780775215625583e-06,
    3.789215643758464e-06,
    1.392621183618803e-06,
    -1.396807230177146e-05,
    -2.7579864674305787e-05,
    2.7525480361206068e-05,
    0.00017436116545392264,
    4.355560219515472e-05,
    -0.000981977026567889,
    -0.0008471432509203844,
    0.006997461739200444,
    0.003732892404327764,
    -0.07897858101573213,
    0.24165819424246646,
    -0.4271858474139584,
    0.25539567631050575,
]
# erfc(x) * e^(x^2) for 0 <= x <= 10.2 as a polynomial of (x - 3) / (x + 3); its error is below 2^-39 of it.
_ERFC = [
    8.333737424122528e-07,
    1.3554572556584432e-06,
    -7.876057844281859e-06,
    -1.2252183452007848e-05,
    6.414237534710376e-05,
    4.502889861497661e-05,
    -0.00059711203606444,
    0.0007077912378402745,
    0.004269146055209928,
    -0.024392504036741605,
    0.07166583643492258,
    -0.15011593626955888,
    0.24560380173188412,
    -0.32623356004645987,
    0.17900115118132498,
]
_ERFC_ZERO = 10.2
"""From here on erfc rounds to 0 in float32."""
# 1 / (2 pi) in parts of 29 bits, whose products with a float32 number are exact.
_TURNS = [
    float.fromhex("0x1.45f306dp-3"),
    float.fromhex("0x1.9391054p-32"),
    float.fromhex("0x1.4fe13abp-61"),
    float.fromhex("0x1.d1f534dp-90"),
    float.fromhex("0x1.b81b6c5p-119"),
    float.fromhex("0x1.5993c43p-150"),
    float.fromhex("0x1.2083fcap-179"),
]
_LESS_THAN_ONE = 2
"""The last parts, whose products with any float32 number are fractions."""
_LARGEST_DIVISOR = 2.0**200
"""All float32 numbers are less, and infinity counts as it."""
_QUOTIENT_BITS, _QUOTIENT_STEPS = 28, 10
"""Quotients of float32 numbers are less than 2^277; as many bits of one and a float32 number have an exact product."""
# sin(r) / r and cos(r) for |r| <= pi/4 as polynomials of r^2, by Taylor.
_SINE = [(-1) ** n / math.factorial(2 * n + 1) for n in range(7, -1, -1)]
_COSINE = [(-1) ** n / math.factorial(2 * n) for n in range(8, -1, -1)]


@cache
def _root_tables() -> list[NDArray[np.float32]]:
    """2^(i / 32) less i / 32 in its exponent, as sums of two float32 numbers.

    Two sums are 2^-49 off, so that all float32 numbers have the bits of glibc's function on CPUs with fused
    multiply-adds: with the nearest sums three would differ, 2.2124498, 32.564632 and -63.09946.
    """
    exact = np.array([float(Decimal(2) ** (Decimal(i) / _ROOTS)) for i in range(_ROOTS)])
    numbers = (exact.view(np.int64) - (np.arange(_ROOTS) << _ROOT_SHIFT)).view(np.float64)
    high = numbers.astype(np.float32)
    low = (numbers - high).astype(np.float32)
    low[[6, 31]] += np.array([-(2.0**-49), 2.0**-49], np.float32)
    return [high, low]


class Machine(FloatMachine[V]):
    """Operations on f64 values `V`."""

    def __init__(self, ops: machine.Machine[V]) -> None:
        super().__init__(ops, _F)

    def where_equal(self, a: V, b: V, then: V, other: V) -> V:
        """`then` where a = b, else `other`; a NaN equals nothing."""
        return self._ops.select(self._ops.compare("oeq", a, b), then, other)

    def floor(self, a: V) -> V:
        """The largest integer that is not above a."""
        return self._ops.unary("math.floor", a)

    def split(self, a: V) -> tuple[V, V]:
        """(k, f) with a = 2^k * f and f in [sqrt(1/2), sqrt(2)), for a normal positive number."""
        ops = self._ops
        root = ops.constant(_ROOT_HALF_BITS, _I)
        above = ops.subtract(ops.cast("arith.bitcast", a, _I), root)
        exponent = ops.binary("arith.shrsi", above, ops.constant(_FRACTION_BITS, _I))
        # A small integer becomes a float as the low bits of one: not every target converts 64 bits.
        biased = ops.add(exponent, ops.constant(_ROUNDER_BITS, _I))
        k = self.subtract(ops.cast("arith.bitcast", biased, _F), self.constant(ROUNDER))
        fraction = ops.binary("arith.andi", above, ops.constant(_FRACTION_MASK, _I))
        return k, ops.cast("arith.bitcast", ops.add(fraction, root), _F)

    def by_quadrant(self, n: V, even: V, odd: V) -> V:
        """`even` or `odd` by the lowest bit of the integer n, with the sign of its second bit."""
        ops = self._ops
        bits = ops.cast("arith.bitcast", self.add(n, self.constant(ROUNDER)), _I)
        lowest, zero = ops.binary("arith.andi", bits, ops.constant(1, _I)), ops.constant(0, _I)
        value = ops.select(ops.compare("eq", lowest, zero), even, odd)
        second = ops.binary("arith.andi", bits, ops.constant(2, _I))
        minus = ops.binary("arith.shli", second, ops.constant(62, _I))
        return self.changed_sign(value, ops.cast("arith.bitcast", minus, _F))

    def changed_sign(self, a: V, by: V) -> V:
        """`a` with the other sign where that of `by` is minus."""
        ops = self._ops
        sign = ops.binary("arith.andi", ops.cast("arith.bitcast", by, _I), ops.constant(-(2**63), _I))
        return ops.cast("arith.bitcast", ops.binary("arith.xori", ops.cast("arith.bitcast", a, _I), sign), _F)

    def power_of_two(self, exponent: V) -> V:
        """2^exponent for an integer in [-1022, 1023]: the low bits of exponent + `ROUNDER` + bias, shifted up by 52."""
        ops = self._ops
        bits = ops.cast("arith.bitcast", self.add(exponent, self.constant(ROUNDER + _EXPONENT_BIAS)), _I)
        return ops.cast("arith.bitcast", ops.binary("arith.shli", bits, ops.constant(_FRACTION_BITS, _I)), _F)

    def root_power(self, n: V) -> V:
        """2^(k / 32) of `n` = k + `ROUNDER`, a normal number: that of k modulo 32, and k / 32 more in its exponent."""
        ops, bits = self._ops, self._ops.cast("arith.bitcast", n, _I)
        wrapped = ops.binary("arith.andi", ops.cast("arith.trunci", bits, "i32"), ops.constant(_ROOTS - 1, "i32"))
        index = ops.cast("arith.index_cast", wrapped, "index")
        high, low = (ops.cast("arith.extf", ops.extract(ops.table(table), index), _F) for table in _root_tables())
        shifted = ops.binary("arith.shli", bits, ops.constant(_ROOT_SHIFT, _I))
        return ops.cast("arith.bitcast", ops.add(ops.cast("arith.bitcast", self.add(high, low), _I), shifted), _F)


NUMPY: Machine[Any] = Machine(machine.NUMPY)
"""On float64 arrays."""


def exp(m: Machine[V], x: V) -> V:
    """e^x; x counts as -708 below that and as 709 above."""
    scale, rest = _scaled_exponential(m, x)
    return m.add(scale, rest)


def expf(m: Machine[V], x: V) -> V:
    """e^x of a float32 number with the bits of glibc's `expf` once it is rounded: 2^(k / 32) 2^(r / 32)."""
    low, high, rounder = m.constant(_EXPF_LOWEST), m.constant(_EXPF_HIGHEST), m.constant(ROUNDER)
    x = m.where_less(x, low, low, x)
    x = m.where_less(high, x, high, x)
    scaled = m.multiply(x, m.constant(_ROOTS / _LN2))
    n = m.add(scaled, rounder)
    r = m.subtract(scaled, m.subtract(n, rounder))
    return m.multiply(m.root_power(n), _polynomial(m, r, _ROOT))


def exp2(m: Machine[V], x: V) -> V:
    """2^x; x counts as -1021 below that and as 1023 above."""
    low, high, rounder = m.constant(-1021.0), m.constant(1023.0), m.constant(ROUNDER)
    x = m.where_less(x, low, low, m.where_less(high, x, high, x))
    k = m.subtract(m.add(x, rounder), rounder)
    r = m.multiply(m.subtract(x, k), m.constant(_LN2))
    scale = m.power_of_two(k)
    return m.add(scale, m.multiply(scale, m.multiply(r, _polynomial(m, r, _EXPONENTIAL))))


def expm1(m: Machine[V], x: V) -> V:
    """e^x - 1, accurate near zero too; x counts as -708 below that and as 709 above."""
    scale, rest = _scaled_exponential(m, x)
    return _unless_zero(m, x, m.add(m.subtract(scale, m.constant(1.0)), rest))


def tanh(m: Machine[V], x: V) -> V:
    """t / (t + 2) with t = e^(2|x|) - 1, and the sign of x."""
    size = _smaller(m, _absolute(m, x), m.constant(_TANH_ONE))
    grown = expm1(m, m.add(size, size))
    return _with_sign(m, x, m.divide(grown, m.add(grown, m.constant(2.0))))


def erf(m: Machine[V], x: V) -> V:
    """x * P(x^2) up to 1, beyond that 1 - e^(-x^2) * Q((x - 2) / (x + 2)), with the sign of x."""
    one = m.constant(1.0)
    size = _smaller(m, _absolute(m, x), m.constant(_ERF_ONE))
    square = m.multiply(size, size)
    near = m.multiply(size, _polynomial(m, square, _ERF_SMALL))
    ratio = m.divide(m.subtract(size, m.constant(2.0)), m.add(size, m.constant(2.0)))
    tail = m.multiply(exp(m, m.subtract(m.constant(0.0), square)), _polynomial(m, ratio, _ERF_LARGE))
    return _with_sign(m, x, m.where_less(one, size, m.subtract(one, tail), near))


def log(m: Machine[V], x: V) -> V:
    """k ln 2 + 2 atanh(s), s = (f - 1) / (f + 1), for x = 2^k f; float32's smallest numbers are normal in float64."""
    zero, one = m.constant(0.0), m.constant(1.0)
    k, f = m.split(x)
    s = m.divide(m.subtract(f, one), m.add(f, one))
    square = m.multiply(s, s)
    tail = m.multiply(s, m.multiply(square, _polynomial(m, square, _ATANH)))
    value = m.add(m.add(m.multiply(s, m.constant(2.0)), tail), m.multiply(k, m.constant(_LN2_LOW)))
    value = m.add(value, m.multiply(k, m.constant(_LN2_HIGH)))
    ended = m.where_less(x, zero, m.constant(math.nan), m.constant(-math.inf))
    return m.where_less(x, m.constant(math.inf), m.where_less(zero, x, value, ended), x)


def log2(m: Machine[V], x: V) -> V:
    """log(x) / ln 2."""
    return m.multiply(log(m, x), m.constant(1 / _LN2))


def log10(m: Machine[V], x: V) -> V:
    """log(x) / ln 10."""
    return m.multiply(log(m, x), m.constant(1 / math.log(10)))


def log1p(m: Machine[V], x: V) -> V:
    """log(u) - ((u - 1) - x) / u with u = 1 + x as it is rounded: the second term makes good for the rounding."""
    zero, one = m.constant(0.0), m.constant(1.0)
    u = m.add(x, one)
    lost = m.divide(m.subtract(m.subtract(u, one), x), u)
    lost = m.where_less(zero, u, m.where_less(u, m.constant(math.inf), lost, zero), zero)
    return _unless_zero(m, x, m.subtract(log(m, u), lost))


def power(m: Machine[V], x: V, y: V) -> V:
    """x^y as e^(y log |x|) with the special cases of C's pow: a negative x takes an integer y, whose parity counts."""
    zero, one = m.constant(0.0), m.constant(1.0)
    base, whole, half = _absolute(m, x), m.floor(y), m.multiply(y, m.constant(0.5))
    # A reciprocal shows the sign of a zero.
    minus = m.constant(-1.0)
    sign = m.where_less(x, zero, minus, m.where_less(m.divide(one, x), zero, minus, one))
    sign = m.where_equal(whole, y, m.where_equal(m.floor(half), half, one, sign), one)
    value = m.multiply(exp(m, m.multiply(y, log(m, base))), sign)
    lost = m.where_equal(whole, y, value, m.constant(math.nan))
    value = m.where_less(x, zero, m.where_less(base, m.constant(math.inf), lost, value), value)
    value = m.where_equal(base, one, m.where_equal(whole, y, sign, value), value)
    return m.where_equal(y, zero, one, m.where_equal(x, one, one, value))


def erfc(m: Machine[V], x: V) -> V:
    """e^(-x^2) * R((|x| - 3) / (|x| + 3)), or what it lacks of 2 where x is negative."""
    size = _smaller(m, _absolute(m, x), m.constant(_ERFC_ZERO))
    ratio = m.divide(m.subtract(size, m.constant(3.0)), m.add(size, m.constant(3.0)))
    raised = exp(m, m.subtract(m.constant(0.0), m.multiply(size, size)))
    value = m.multiply(raised, _polynomial(m, ratio, _ERFC))
    return m.where_less(x, m.constant(0.0), m.subtract(m.constant(2.0), value), value)


def remainder(m: Machine[V], x: V, y: V) -> V:
    """x - trunc(x / y) * y of float32 numbers, exact: some bits of the quotient at a time, the highest first."""
    zero, rest = m.constant(0.0), _absolute(m, x)
    divisor = _smaller(m, _absolute(m, y), m.constant(_LARGEST_DIVISOR))
    reciprocal = m.divide(m.constant(1.0), divisor)
    for step in reversed(range(_QUOTIENT_STEPS)):
        scale = 2.0 ** (step * _QUOTIENT_BITS)
        # One too large or too small near a whole number, which the next step makes good for.
        quotient = m.floor(m.multiply(rest, m.multiply(reciprocal, m.constant(1 / scale))))
        rest = m.subtract(rest, m.multiply(quotient, m.multiply(divisor, m.constant(scale))))
    rest = m.where_less(rest, zero, m.add(rest, divisor), rest)
    rest = m.where_less(rest, divisor, rest, m.subtract(rest, divisor))
    signed = m.where_less(x, zero, m.multiply(rest, m.constant(-1.0)), rest)
    # Zero has its sign, and a remainder only if the divisor is none.
    return m.where_equal(x, zero, m.subtract(x, signed), signed)


def sin(m: Machine[V], x: V) -> V:
    """Sine of a float32 number; NaN of infinity."""
    return m.changed_sign(_circular(m, x, 0.0), x)


def cos(m: Machine[V], x: V) -> V:
    """Cosine of a float32 number; NaN of infinity."""
    return _circular(m, x, 1.0)


def _circular(m: Machine[V], x: V, shift: float) -> V:
    """The sine of |x| and `shift` quadrants: of |x| = n pi/2 + r that of r, its cosine or a negative, by n modulo 4.

    What a float32 number times each part of 1 / (2 pi) is beyond whole turns is exact, and their sum is nearly so.
    """
    products = [m.multiply(_absolute(m, x), m.constant(part)) for part in _TURNS]
    parts = [m.subtract(product, m.floor(product)) for product in products[:-_LESS_THAN_ONE]]
    parts += products[-_LESS_THAN_ONE:]
    turns = parts[0]
    for part in parts[1:]:
        turns = m.add(turns, part)
    n = _rounded(m, m.multiply(turns, m.constant(4.0)))
    angle = m.subtract(parts[0], m.multiply(n, m.constant(0.25)))
    for part in parts[1:]:
        angle = m.add(angle, part)
    r = m.multiply(angle, m.constant(2 * math.pi))
    square = m.multiply(r, r)
    sine, cosine = m.multiply(r, _polynomial(m, square, _SINE)), _polynomial(m, square, _COSINE)
    return m.by_quadrant(m.add(n, m.constant(shift)), sine, cosine)


def _rounded(m: Machine[V], x: V) -> V:
    rounder = m.constant(ROUNDER)
    return m.subtract(m.add(x, rounder), rounder)


def _scaled_exponential(m: Machine[V], x: V) -> tuple[V, V]:
    """2^k and 2^k * (e^r - 1) with x = k * ln 2 + r."""
    low, high, rounder = m.constant(_MIN_EXPONENT), m.constant(_MAX_EXPONENT), m.constant(ROUNDER)
    x = m.where_less(x, low, low, m.where_less(high, x, high, x))
    k = m.subtract(m.add(m.multiply(x, m.constant(1 / _LN2)), rounder), rounder)
    r = m.subtract(x, m.multiply(k, m.constant(_LN2_HIGH)))
    r = m.subtract(r, m.multiply(k, m.constant(_LN2_LOW)))
    scale = m.power_of_two(k)
    return scale, m.multiply(scale, m.multiply(r, _polynomial(m, r, _EXPONENTIAL)))


def _polynomial(m: Machine[V], x: V, coefficients: Sequence[float]) -> V:
    value = m.constant(coefficients[0])
    for coefficient in coefficients[1:]:
        value = m.add(m.multiply(value, x), m.constant(coefficient))
    return value


def _absolute(m: Machine[V], x: V) -> V:
    zero = m.constant(0.0)
    return m.where_less(x, zero, m.subtract(zero, x), x)


def _smaller(m: Machine[V], x: V, maximum: V) -> V:
    return m.where_less(maximum, x, maximum, x)


def _with_sign(m: Machine[V], x: V, size: V) -> V:
    zero = m.constant(0.0)
    return _unless_zero(m, x, m.where_less(x, zero, m.subtract(zero, size), size))


def _unless_zero(m: Machine[V], x: V, value: V) -> V:
    """`value`, but `x` where that is a zero, which has a sign, or NaN."""
    zero = m.constant(0.0)
    return m.where_less(x, zero, value, m.where_less(zero, x, value, x))


IN_FLOAT64: Mapping[str, Callable[[Machine[Any], Any], Any]] = {
    "math.cos": cos,
    "math.erf": erf,
    "math.erfc": erfc,
    "math.exp": exp,
    "math.exp2": exp2,
    "math.expm1": expm1,
    "math.log": log,
    "math.log10": log10,
    "math.log1p": log1p,
    "math.log2": log2,
    "math.sin": sin,
    "math.tanh": tanh,
}
"""By the name of the op: functions of one number."""
OF_LIBRARY: Mapping[str, Callable[[Machine[Any], Any], Any]] = {**IN_FLOAT64, "math.exp": expf}
"""The same of float32 numbers, with a C library's bits where these are known."""
PAIRS: Mapping[str, Callable[[Machine[Any], Any, Any], Any]] = {"arith.remf": remainder, "math.powf": power}
"""The same of two numbers."""


def evaluate(algorithm: Callable[..., Any], *operands: FloatArray) -> FloatArray:
    """A function of arrays of one float type, taken in float64 and rounded to the type once.

    NumPy's own float32 functions differ between CPUs, and a table must not depend on the machine that builds it.
    """
    with np.errstate(all="ignore"):
        return algorithm(NUMPY, *(x.astype(np.float64) for x in operands)).astype(operands[0].dtype)
