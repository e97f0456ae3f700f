"""Transcendental functions of float32 numbers as scalar bodies.

Every step is taken in float64, in plain vector arithmetic, and the result is rounded once: what the reference does.
Each function is within a few units of float64's last place, so the float32 result is the correctly rounded one unless
the exact value lies within about 2^-50 of the middle between two float32 numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from qdialect.lowering.kernel_text import Body

_F, _I = "f64", "i64"
# Adding it leaves a number's integer part, rounded to even, in the low bits of the mantissa.
_TO_INTEGER = 1.5 * 2.0**52
_BIAS, _FRACTION_BITS = 1023, 52
# ln 2 in two parts; multiples of the first by an exponent are exact.
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_LOG2_E = math.log2(math.e)
_LEAST_EXPONENT, _MOST_EXPONENT = -708.0, 709.0
_EXP_TERMS = 13
_LOG_TERMS = 11
_ROOT_HALF_BITS = int(np.float64(math.sqrt(0.5)).view(np.int64))
_FRACTION_MASK = 2**_FRACTION_BITS - 1
# In float32 tanh is 1 from 9.1 on, and erf from 3.92 on.
_MOST_TANH, _MOST_ERF = 20.0, 4.0
# erf(x) / x as a polynomial in x^2 / 8 - 1 on [-1, 1]: interpolated at 28 Chebyshev points, relative error 4e-16.
_ERF = (
    0.35353099564340495,
    -0.17657623330137032,
    0.13167511689470182,
    -0.10771044252870698,
    0.09020899411202439,
    -0.07472786574026334,
    0.059886904985510615,
    -0.045765110495860364,
    0.03306063261315334,
    -0.022473567805506797,
    0.01434959947391328,
    -0.008606224309434427,
    0.004853548862047193,
    -0.0025782108854470374,
    0.0012926183609715688,
    -0.0006129795692641468,
    0.000275528347647821,
    -0.00011766400184687006,
    4.7869336876957806e-05,
    -1.8556058128359642e-05,
    6.829782703349186e-06,
    -2.426600779042305e-06,
    8.63273377394705e-07,
    -2.7958176158411323e-07,
    6.714830552414758e-08,
    -2.1114792309904276e-08,
    1.278596083505781e-08,
    -3.4817519333126177e-09,
)


def _add(body: Body, a: str, b: str) -> str:
    return body.binary("arith.addf", a, b, _F)


def _sub(body: Body, a: str, b: str) -> str:
    return body.binary("arith.subf", a, b, _F)


def _mul(body: Body, a: str, b: str) -> str:
    return body.binary("arith.mulf", a, b, _F)


def _div(body: Body, a: str, b: str) -> str:
    return body.binary("arith.divf", a, b, _F)


def _real(body: Body, value: float) -> str:
    return body.constant(value, _F)


def _where(body: Body, predicate: str, a: str, b: str, chosen: str, other: str) -> str:
    """`chosen` where ``a predicate b``, else `other`."""
    holds = body.op(f"arith.cmpf {predicate}, {a}, {b} : {_F}")
    return body.op(f"arith.select {holds}, {chosen}, {other} : {_F}")


def _limited(body: Body, x: str, low: float | None, high: float) -> str:
    """`x` within bounds; a NaN stays one."""
    top = _real(body, high)
    x = _where(body, "ogt", x, top, top, x)
    if low is None:
        return x
    bottom = _real(body, low)
    return _where(body, "olt", x, bottom, bottom, x)


def _polynomial(body: Body, x: str, coefficients: Sequence[float]) -> str:
    """Horner's rule, the constant term first."""
    value = _real(body, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = _add(body, _mul(body, value, x), _real(body, coefficient))
    return value


def _power_of_two(body: Body, shifted: str) -> str:
    """2^k for an integer k that was added to `_TO_INTEGER`."""
    bits = body.binary("arith.addi", body.cast("arith.bitcast", shifted, _F, _I), body.constant(_BIAS, _I), _I)
    return body.cast("arith.bitcast", body.binary("arith.shli", bits, body.constant(_FRACTION_BITS, _I), _I), _I, _F)


def _reduced(body: Body, x: str) -> tuple[str, str]:
    """(2^k, e^r - 1) with x = k ln 2 + r and |r| <= ln 2 / 2."""
    x = _limited(body, x, _LEAST_EXPONENT, _MOST_EXPONENT)
    shifted = _add(body, _mul(body, x, _real(body, _LOG2_E)), _real(body, _TO_INTEGER))
    k = _sub(body, shifted, _real(body, _TO_INTEGER))
    r = _sub(body, x, _mul(body, k, _real(body, _LN2_HIGH)))
    r = _sub(body, r, _mul(body, k, _real(body, _LN2_LOW)))
    terms = [float(Fraction(1, math.factorial(n))) for n in range(1, _EXP_TERMS + 1)]
    return _power_of_two(body, shifted), _mul(body, r, _polynomial(body, r, terms))


def _exp(body: Body, x: str) -> str:
    power, rest = _reduced(body, x)
    return _mul(body, power, _add(body, rest, _real(body, 1.0)))


def _expm1(body: Body, x: str) -> str:
    power, rest = _reduced(body, x)
    value = _add(body, _mul(body, power, rest), _sub(body, power, _real(body, 1.0)))
    return _where(body, "oeq", x, _real(body, 0.0), x, value)


def _exp2(body: Body, x: str) -> str:
    limited = _limited(body, x, -1021.0, 1023.0)
    shifted = _add(body, limited, _real(body, _TO_INTEGER))
    r = _mul(body, _sub(body, limited, _sub(body, shifted, _real(body, _TO_INTEGER))), _real(body, math.log(2)))
    terms = [float(Fraction(1, math.factorial(n))) for n in range(_EXP_TERMS + 1)]
    return _mul(body, _power_of_two(body, shifted), _polynomial(body, r, terms))


def _tanh(body: Body, x: str) -> str:
    """(e^2|x| - 1) / (e^2|x| + 1), with the sign of x."""
    magnitude = _limited(body, body.op(f"math.absf {x} : {_F}"), None, _MOST_TANH)
    raised = _expm1(body, _add(body, magnitude, magnitude))
    value = _div(body, raised, _add(body, raised, _real(body, 2.0)))
    return body.op(f"math.copysign {value}, {x} : {_F}")


def _erf(body: Body, x: str) -> str:
    magnitude = _limited(body, body.op(f"math.absf {x} : {_F}"), None, _MOST_ERF)
    eighth = _mul(body, _mul(body, magnitude, magnitude), _real(body, 0.125))
    value = _mul(body, magnitude, _polynomial(body, _sub(body, eighth, _real(body, 1.0)), _ERF))
    return body.op(f"math.copysign {value}, {x} : {_F}")


def _log(body: Body, x: str) -> str:
    """k ln 2 + 2 atanh(f / (2 + f)) with x = 2^k (1 + f), 1 + f in [sqrt(1/2), sqrt(2)).

    A float32 number is normal in float64, whatever it was before.
    """
    root = body.constant(_ROOT_HALF_BITS, _I)
    above = body.binary("arith.subi", body.cast("arith.bitcast", x, _F, _I), root, _I)
    fraction = body.binary("arith.andi", above, body.constant(_FRACTION_MASK, _I), _I)
    scaled = body.cast("arith.bitcast", body.binary("arith.addi", fraction, root, _I), _I, _F)
    exponent = body.binary("arith.shrsi", above, body.constant(_FRACTION_BITS, _I), _I)
    # A small integer as a float: in the low bits of the number that rounds to integers.
    shifter = body.constant(int(np.float64(_TO_INTEGER).view(np.int64)), _I)
    lifted = body.cast("arith.bitcast", body.binary("arith.addi", exponent, shifter, _I), _I, _F)
    k = _sub(body, lifted, _real(body, _TO_INTEGER))
    f = _sub(body, scaled, _real(body, 1.0))
    s = _div(body, f, _add(body, f, _real(body, 2.0)))
    squared = _mul(body, s, s)
    tail = _mul(body, squared, _polynomial(body, squared, [2 / (2 * n + 1) for n in range(1, _LOG_TERMS)]))
    value = _add(body, _mul(body, s, _real(body, 2.0)), _mul(body, s, tail))
    value = _add(body, value, _mul(body, k, _real(body, _LN2_LOW)))
    value = _add(body, value, _mul(body, k, _real(body, _LN2_HIGH)))
    zero, infinity = _real(body, 0.0), _real(body, math.inf)
    value = _where(body, "oeq", x, zero, _real(body, -math.inf), value)
    value = _where(body, "olt", x, zero, _real(body, math.nan), value)
    return _where(body, "uge", x, infinity, x, value)


def _scaled_log(scale: float) -> Callable[[Body, str], str]:
    return lambda body, x: _mul(body, _log(body, x), _real(body, scale))


def _log1p(body: Body, x: str) -> str:
    """log(u) - ((u - 1) - x) / u with u = 1 + x rounded: the second term makes good for the rounding."""
    u = _add(body, x, _real(body, 1.0))
    lost = _div(body, _sub(body, _sub(body, u, _real(body, 1.0)), x), u)
    lost = _where(body, "ogt", u, _real(body, 0.0), lost, _real(body, 0.0))
    lost = _where(body, "olt", u, _real(body, math.inf), lost, _real(body, 0.0))
    value = _sub(body, _log(body, u), lost)
    return _where(body, "oeq", x, _real(body, 0.0), x, value)


FUNCTIONS: dict[str, Callable[[Body, str], str]] = {
    "math.erf": _erf,
    "math.exp": _exp,
    "math.exp2": _exp2,
    "math.expm1": _expm1,
    "math.log": _log,
    "math.log10": _scaled_log(1 / math.log(10)),
    "math.log1p": _log1p,
    "math.log2": _scaled_log(1 / math.log(2)),
    "math.tanh": _tanh,
}
"""Between float64 numbers that float32 numbers were; overflow is left to the rounding."""


def emit_transcendental(body: Body, name: str, x: str) -> str:
    """The function of the op `name` of the float32 number `x`, as a float32 number."""
    return body.cast("arith.truncf", FUNCTIONS[name](body, body.cast("arith.extf", x, "f32", _F)), _F, "f32")


def emit_power(body: Body, x: str, y: str) -> str:
    """x^y of float32 numbers, with the special cases of C's pow.

    ``e^(y log |x|)``, negative for a negative x and an odd y, NaN for a negative x and a y that is no integer.
    """
    x, y = (body.cast("arith.extf", value, "f32", _F) for value in (x, y))
    zero, one, infinity = _real(body, 0.0), _real(body, 1.0), _real(body, math.inf)
    base = body.op(f"math.absf {x} : {_F}")
    value = _exp(body, _mul(body, y, _log(body, base)))
    whole = body.op(f"math.floor {y} : {_F}")
    half = _mul(body, y, _real(body, 0.5))
    sign = body.op(f"math.copysign {one}, {x} : {_F}")
    sign = _where(body, "one", body.op(f"math.floor {half} : {_F}"), half, sign, one)
    sign = _where(body, "oeq", whole, y, sign, one)
    value = _mul(body, value, sign)
    lost = _where(body, "une", whole, y, _real(body, math.nan), value)
    lost = _where(body, "olt", base, infinity, lost, value)
    value = _where(body, "olt", x, zero, lost, value)
    is_one = _where(body, "oeq", base, one, sign, value)
    value = _where(body, "oeq", whole, y, is_one, value)
    value = _where(body, "oeq", x, one, one, value)
    value = _where(body, "oeq", y, zero, one, value)
    return body.cast("arith.truncf", value, _F, "f32")
