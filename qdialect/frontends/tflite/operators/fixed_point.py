"""Computes in the fixed point of TFLite's kernels, by upstream ops on tensors of integers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qdialect.arithmetic import quantize_multiplier
from qdialect.arithmetic.tflite_tables import Lines
from qdialect.dialect import InterpolatedLutOp
from qdialect.frontends.building.checks import require
from qdialect.frontends.building.op_builder import Arithmetic, OpBuilder
from qdialect.ir._mlir import ir

_INT32 = (-(2**31), 2**31 - 1)
_LARGEST_EXPONENT = 30


@dataclass(frozen=True)
class FixedPoint:
    """A multiplier ``q * 2^(e - 31)``, which rounds twice (see `qdialect.arithmetic.multipliers`)."""

    q: int
    e: int

    @classmethod
    def of(cls, factor: float) -> FixedPoint:
        """That of a real factor; raises `UnsupportedError` where 32 bits hold no product with it."""
        require(0 <= factor < 2.0**_LARGEST_EXPONENT, f"rescale factor must be in [0, 2^30), but got {factor}")
        return cls(*quantize_multiplier(factor))

    def scaled(self, s: Arithmetic, value: ir.Value) -> ir.Value:
        """An i32 tensor times the multiplier, as an i32 tensor."""
        wide = s.resize(value, "i64")
        if self.e > 0:
            wide = clamped(s, s.op("arith.muli", wide, 1 << self.e), _INT32)
        product = s.op("arith.addi", s.op("arith.muli", wide, self.q), 1 << 30)
        high = s.op("arith.shrsi", product, 31)
        return s.resize(shifted_right(s, high, max(-self.e, 0)), "i32")


def shifted_right(s: Arithmetic, value: ir.Value, count: int) -> ir.Value:
    """An i64 tensor ``value / 2^count``, ties away from zero: a tie of a negative number must not move up."""
    if count == 0:
        return value
    sign = s.op("arith.shrsi", value, 63)
    nudged = s.op("arith.addi", s.op("arith.addi", value, 1 << (count - 1)), sign)
    return s.op("arith.shrsi", nudged, count)


def clamped(s: Arithmetic, value: ir.Value, bounds: tuple[int, int]) -> ir.Value:
    """`value` limited to `bounds`."""
    return s.op("arith.minsi", s.op("arith.maxsi", value, bounds[0]), bounds[1])


def narrowed(s: Arithmetic, value: ir.Value, bounds: tuple[int, int]) -> ir.Value:
    """`value` limited to `bounds`, which are those of i16 or narrower, as i16."""
    return s.resize(clamped(s, value, bounds), "i16")


def f32_quotient(*numbers: float) -> float:
    """The first number divided by the others, in float32."""
    first, *others = (np.float32(number) for number in numbers)
    for other in others:
        first = first / other
    return float(first)


# The logarithm of fixed-point numbers by upstream ops, in the bits of TFLite's kernels.
#
# A number z of at least 1 is 2^n times a remainder r near 1, of two of which, with n a half apart, the smaller one is
# taken; a rational function of r gives its logarithm (TFLite log_x_for_x_greater_than_or_equal_to_1).

_ROOT = math.sqrt(math.sqrt(2))


def _q31(number: float) -> int:
    return round(number * 2**31)


_LOG_2, _ROOT_HALF, _ROOT_ROOT_HALF = _q31(math.log(2)), _q31(math.sqrt(0.5)), _q31(math.sqrt(math.sqrt(0.5)))
_ALPHA_N, _ALPHA_D = _q31(11 / 240 * _ROOT), _q31(1 / 20 * _ROOT)
_ALPHA_I, _ALPHA_F = _q31(2 / _ROOT - _ROOT), _q31(_ROOT / 4)
# Newton's division: 48 / 17, -32 / 17 and one in Q2.29.
_START, _SLOPE, _ONE_Q29 = round(48 / 17 * 2**29), round(-32 / 17 * 2**29), 1 << 29
_NEWTON_STEPS = 3


def product(s: Arithmetic, lhs: ir.Value, rhs: ir.Value | int) -> ir.Value:
    """The upper half of twice the product of i64 tensors that hold 32 bits, rounded."""
    return s.op("arith.shrsi", s.op("arith.addi", s.op("arith.muli", lhs, rhs), 1 << 30), 31)


def shifted_left(s: Arithmetic, value: ir.Value, count: ir.Value | int) -> ir.Value:
    """``value * 2^count`` in i64, saturated to 32 bits."""
    return clamped(s, s.op("arith.shli", value, count), _INT32)


def logarithm(s: Arithmetic, value: ir.Value, integer_bits: int, output_bits: int) -> ir.Value:
    """Of an i64 tensor of 32-bit numbers of at least one with `integer_bits`, in `output_bits`; i64."""
    fraction_bits = 31 - output_bits - 1
    quarter = 1 << (fraction_bits - 2)
    headroom = _leading_zeros(s, value)
    normal = s.op("arith.shli", value, s.op("arith.subi", headroom, 1))
    first = shifted_left(s, product(s, normal, _ROOT_HALF), 1)
    power = _power(s, headroom, integer_bits, fraction_bits, quarter)
    other_headroom = s.op("arith.subi", _leading_zeros(s, product(s, value, _ROOT_HALF)), 1)
    second = shifted_left(s, value, other_headroom)
    other_power = _power(s, other_headroom, integer_bits, fraction_bits, -quarter)
    rest, exponent = s.op("arith.minsi", first, second), s.op("arith.maxsi", power, other_power)
    numerator, reciprocal = _fraction(s, rest)
    scaled = product(s, shifted_right(s, numerator, output_bits + 1), reciprocal)
    return shifted_left(s, s.op("arith.addi", product(s, exponent, _LOG_2), scaled), 1)


def _leading_zeros(s: Arithmetic, value: ir.Value) -> ir.Value:
    """Of the 32 bits."""
    return s.op("arith.subi", s.op("math.ctlz", value), 32)


def _power(s: Arithmetic, headroom: ir.Value, integer_bits: int, fraction_bits: int, quarter: int) -> ir.Value:
    bits = s.op("arith.addi", s.op("arith.muli", headroom, -1), integer_bits)
    return clamped(s, s.op("arith.addi", shifted_left(s, bits, fraction_bits), quarter), _INT32)


def _fraction(s: Arithmetic, rest: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Numerator and 1 / denominator of the logarithm of a remainder, Q0.31."""
    middle = s.op("arith.shrsi", s.op("arith.addi", rest, _ROOT_ROOT_HALF + 1), 1)
    distance = s.op("arith.muli", s.op("arith.subi", rest, _ROOT_ROOT_HALF), 2)
    square = product(s, distance, distance)
    cubic = product(s, product(s, distance, square), _ALPHA_N)
    numerator = s.op("arith.addi", product(s, distance, rest), cubic)
    slope = s.op("arith.addi", s.op("arith.addi", distance, _ALPHA_I), product(s, square, _ALPHA_D))
    denominator = s.op("arith.addi", product(s, middle, slope), product(s, distance, _ALPHA_F))
    # 1 / (1 + x) of Q0.31 x in [0, 1].
    half = s.op("arith.shrsi", s.op("arith.addi", denominator, 2**31), 1)
    x = s.op("arith.addi", product(s, half, _SLOPE), _START)
    for _ in range(_NEWTON_STEPS):
        error = s.op("arith.addi", s.op("arith.muli", product(s, half, x), -1), _ONE_Q29)
        x = s.op("arith.addi", x, shifted_left(s, product(s, x, error), 2))
    return numerator, shifted_left(s, x, 1)


# Tables of numbers between which there are straight lines.


def looked_up(emitter: OpBuilder, value: ir.Value, lines: Lines) -> ir.Value:
    """An i32 tensor by a table; the result has the table's fractional bits."""
    bases, slopes = lines.bases.tolist(), lines.slopes.tolist()
    how = {"bases": bases, "slopes": slopes, "fraction": lines.fraction}
    return emitter.build(InterpolatedLutOp, value, element="i32", **how)


def i16_lookup(emitter: OpBuilder, value: ir.Value, entries: Lines) -> ir.Value:
    """A table of 513 entries at the i32 `value`, which is in the range of int16; an i32 in that range (LUTLookup)."""
    s = Arithmetic(emitter)
    found = looked_up(emitter, s.op("arith.addi", value, 1 << 15), entries)
    return s.op("arith.shrsi", s.op("arith.addi", found, 1 << (entries.fraction - 1)), entries.fraction)
