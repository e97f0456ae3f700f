"""Floats of 16 bits, f16 and bf16, as their bits in i16: widened to f32, and rounded from it half to even."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from qdialect.arithmetic.machine import Machine, V

# Bits of f32: 1 of the sign, 8 of the exponent, 23 of the fraction.  bf16 is their upper half.  f16 has 5 bits of the
# exponent, whose bias is smaller by 112, and 10 bits of the fraction.

_HALF = 16
_SIGN, _MAGNITUDE = 0x8000, 0x7FFF
_F32_MAGNITUDE, _F32_INFINITY = 0x7FFFFFFF, 0x7F800000
_FRACTION, _BIAS = 13, 112
"""Places between the fractions of f16 and f32, and between their exponents."""
_F16_INFINITY, _QUIET, _F16_FRACTION = 0x7C00, 0x200, 0x3FF
_F16_END, _F16_NORMAL = (_BIAS + 31) << 23, (_BIAS + 1) << 23
"""The bits, as f32 numbers, of 2^16, from which on f16 has no number, and of 2^-14, its smallest normal number."""
_BF16_QUIET = 0x40


def _shift(m: Machine[V], op: str, value: V, places: int) -> V:
    return m.binary(op, value, m.constant(places, "i32"))


def _and(m: Machine[V], value: V, mask: int) -> V:
    return m.binary("arith.andi", value, m.constant(mask, "i32"))


def _or(m: Machine[V], value: V, other: V) -> V:
    return m.binary("arith.ori", value, other)


def _rounded_up(m: Machine[V], bits: V, places: int) -> V:
    """`bits` from whose last `places` a shift makes a number that is rounded half to even."""
    last = _and(m, _shift(m, "arith.shrui", bits, places), 1)
    return m.add(m.add(bits, m.constant((1 << (places - 1)) - 1, "i32")), last)


def widen_bf16(m: Machine[V], stored: V) -> V:
    """The f32 number of a bf16 number's bits."""
    return m.cast("arith.bitcast", _shift(m, "arith.shli", m.cast("arith.extui", stored, "i32"), _HALF), "f32")


def round_bf16(m: Machine[V], x: V) -> V:
    """The bits of the bf16 number next to an f32 number; NaN becomes a quiet one with its first bits."""
    bits = m.cast("arith.bitcast", x, "i32")
    quiet = _or(m, bits, m.constant(_BF16_QUIET << _HALF, "i32"))
    kept = m.select(m.compare("uno", x, x), quiet, _rounded_up(m, bits, _HALF))
    return m.cast("arith.trunci", _shift(m, "arith.shrui", kept, _HALF), "i16")


def widen_f16(m: Machine[V], stored: V) -> V:
    """The f32 number of an f16 number's bits."""
    word = m.cast("arith.extui", stored, "i32")
    magnitude = _shift(m, "arith.shli", _and(m, word, _MAGNITUDE), _FRACTION)
    # The exponent is too small by a constant, of subnormal numbers as well.
    scaled = m.multiply(m.cast("arith.bitcast", magnitude, "f32"), m.constant(2.0**_BIAS, "f32"))
    is_finite = m.compare("slt", magnitude, m.constant(_F16_INFINITY << _FRACTION, "i32"))
    above = _or(m, magnitude, m.constant(_F32_INFINITY, "i32"))
    widened = m.select(is_finite, m.cast("arith.bitcast", scaled, "i32"), above)
    return m.cast("arith.bitcast", _or(m, widened, _shift(m, "arith.shli", _and(m, word, _SIGN), _HALF)), "f32")


def round_f16(m: Machine[V], x: V) -> V:
    """The bits of the f16 number next to an f32 number; NaN becomes a quiet one with its first bits."""
    bits = m.cast("arith.bitcast", x, "i32")
    size = _and(m, bits, _F32_MAGNITUDE)
    rebiased = m.subtract(size, m.constant(_BIAS << 23, "i32"))
    normal = _shift(m, "arith.shrui", _rounded_up(m, rebiased, _FRACTION), _FRACTION)
    # The last place of 1/2 is the smallest subnormal number, 2^-24: a sum with it has their count in its fraction.
    total = m.add(m.cast("arith.bitcast", size, "f32"), m.constant(0.5, "f32"))
    count = m.subtract(m.cast("arith.bitcast", total, "i32"), m.constant((_BIAS + 14) << 23, "i32"))
    small = m.select(m.compare("slt", size, m.constant(_F16_NORMAL, "i32")), count, normal)
    fraction = _and(m, _shift(m, "arith.shrui", size, _FRACTION), _F16_FRACTION)
    nan = _or(m, fraction, m.constant(_F16_INFINITY | _QUIET, "i32"))
    large = m.select(m.compare("uno", x, x), nan, m.constant(_F16_INFINITY, "i32"))
    found = m.select(m.compare("slt", size, m.constant(_F16_END, "i32")), small, large)
    return m.cast("arith.trunci", _or(m, found, _and(m, _shift(m, "arith.shrui", bits, _HALF), _SIGN)), "i16")


WIDEN: Mapping[str, Callable[[Machine[Any], Any], Any]] = {"bf16": widen_bf16, "f16": widen_f16}
"""By element type: ``widen(machine, bits)`` is the f32 number of a number's bits, exactly."""
ROUND: Mapping[str, Callable[[Machine[Any], Any], Any]] = {"bf16": round_bf16, "f16": round_f16}
"""By element type: ``round_(machine, x)`` gives the bits of the nearest number, of two the even one."""
