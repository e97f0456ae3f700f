"""Functions of f32 numbers: roundings, with their conversion too, exact multiply-adds, products with powers of two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from qdialect.arithmetic.float32.machine import EXPONENT_BIAS, ROUNDER, SCALED
from qdialect.ir._mlir import arith, ir, math, scf, vector
from qdialect.lowering.instructions.instruction import Instruction
from qdialect.lowering.ir import building as b
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern, require_f32
from qdialect.passes.pattern import MatchFailure, require

# Rounding, to even or down, and conversion to integers in one `vcvtps2dq`; of four numbers in `cvtps2dq`.


@dataclass(frozen=True)
class _Rounded:
    """Numbers, and what rounds them."""

    source: ir.Value
    instruction: Instruction


class RoundConvert(InstructionPattern[_Rounded]):
    """The conversion of whole vectors of float32 numbers, rounded to even or down, to 32-bit integers."""

    roots = ("arith.fptosi",)

    def __init__(self, conversions: Mapping[str, Instruction]) -> None:
        self._conversions = conversions

    def check(self, op: ir.Operation) -> _Rounded | None:
        found = next((one for name in self._conversions if (one := b.defining(op.operands[0], name))), None)
        if found is None or not b.is_vector_of(op.results[0], 32):
            return None
        require_f32(ir.VectorType(found.operands[0].type).element_type)
        instruction = self._conversions[found.name]
        count, lanes = instruction.result.count, b.lanes_of(found.operands[0])
        require(lanes % count == 0, f"vectors must have {count} lanes, but got {lanes}")
        return _Rounded(found.operands[0], instruction)

    def emit(self, op: ir.Operation, match: _Rounded) -> ir.Value:
        type_, count = ir.VectorType(op.results[0].type), match.instruction.result.count
        shape = list(type_.shape)
        if shape == [count]:
            return match.instruction.emit(match.source)
        by_vector = shape if shape[-1] == count else [*shape[:-1], shape[-1] // count, count]
        source = vector.shape_cast(ir.VectorType.get(by_vector, ir.F32Type.get()), match.source)
        result = b.splat(ir.VectorType.get(by_vector, type_.element_type), 0)
        for position in np.ndindex(*by_vector[:-1]):
            result = b.insert(match.instruction.emit(b.extract(source, position)), result, position)
        return vector.shape_cast(type_, result)


# Vectors of f32 numbers rounded where no instruction does that, as on CPUs before SSE4.1.
#
# LLVM calls a function of the C library for each number there.  From 2^23 on every number is an integer.  A smaller
# one, x, is converted to an integer and back, which is t, x without its fraction: exact, as 24 bits hold it.  Then
#
#   to zero   t
#   down      t, less 1 where t > x
#   up        t, plus 1 where t < x
#   to even   |x| + 2^23 - 2^23, as the sum has no bit for a fraction and is rounded to even
#
# and the sign of x, which also a zero keeps.

_INTEGERS = 2.0**23
"""The least number from which on all are integers."""
_Float = arith.CmpFPredicate


class VectorRounding(InstructionPattern[ir.VectorType]):
    """The rounding of vectors of f32 numbers."""

    roots = ("math.roundeven", "math.floor", "math.ceil", "math.trunc")

    def check(self, op: ir.Operation) -> ir.VectorType | None:
        type_ = op.results[0].type
        if not isinstance(type_, ir.VectorType):
            return None
        require_f32(type_.element_type)
        return type_

    def emit(self, op: ir.Operation, match: ir.VectorType) -> ir.Value:
        source = op.operands[0]
        has_fraction = arith.cmpf(_Float.OLT, math.absf(source), b.splat(match, _INTEGERS))
        # Numbers out of range of i32 must not be converted.
        small = arith.select(has_fraction, source, b.splat(match, 0.0))
        return arith.select(has_fraction, math.copysign(_rounded(op.name, small, match), source), source)


def _rounded(name: str, small: ir.Value, type_: ir.VectorType) -> ir.Value:
    """Numbers less than 2^23, rounded by the op `name`; the sign of a zero does not matter."""
    if name == "math.roundeven":
        integers = b.splat(type_, _INTEGERS)
        return arith.subf(arith.addf(math.absf(small), integers), integers)
    whole = _without_fraction(small, type_)
    if name == "math.floor":
        return arith.subf(whole, _one_where(_Float.OGT, whole, small, type_))
    return arith.addf(whole, _one_where(_Float.OLT, whole, small, type_)) if name == "math.ceil" else whole


def _without_fraction(small: ir.Value, type_: ir.VectorType) -> ir.Value:
    integers = ir.VectorType.get(type_.shape, ir.IntegerType.get_signless(32))
    return arith.sitofp(type_, arith.fptosi(integers, small))


def _one_where(how: arith.CmpFPredicate, left: ir.Value, right: ir.Value, type_: ir.VectorType) -> ir.Value:
    return arith.select(arith.cmpf(how, left, right), b.splat(type_, 1.0), b.splat(type_, 0.0))


# Fused multiply-adds where no instruction computes them: in float64, with a sum that is rounded to odd.
#
# The product p = a * b of float32 numbers is exact in float64, the sum s = p + c is not.  Rounding s to float32 would
# be a second rounding: where s has become a tie, it does not see on which side of the tie p + c lies.  A sum that is
# rounded to odd, to the neighbour with an odd last bit where it is inexact, is a tie only where p + c is one, as
# float64 has more than twice the bits of float32 and two.  What s has lost, e = p + c - s, is exact (Knuth's TwoSum),
# and tells where the odd neighbour is:
#
#   e is 0                    s itself
#   s and e of one sign       |s| was rounded down: s with its last bit set
#   s and e of two signs      |s| was rounded up: the number below |s|, with its last bit set
#
# The bits of the number below |s| are those of s, as an integer, less 1.
#
# Of a vector, only where a sum s may be a tie all of them are rounded to odd: 2^-29 of all sums are one.

_SIGN = 63


@dataclass(frozen=True)
class _Types:
    """The type of a result in float32, the types of its computation, and their constants."""

    result: ir.Type
    wide: ir.Type
    bits: ir.Type


class ExactMultiplyAdd(InstructionPattern[_Types]):
    """A fused multiply-add of f32 numbers or vectors of them."""

    roots = ("math.fma",)

    def check(self, op: ir.Operation) -> _Types:
        type_ = op.results[0].type
        require_f32(type_.element_type if isinstance(type_, ir.VectorType) else type_)
        return _Types(type_, _of(type_, ir.F64Type.get()), _of(type_, ir.IntegerType.get_signless(64)))

    def emit(self, op: ir.Operation, match: _Types) -> ir.Value:
        if not isinstance(match.result, ir.VectorType) or match.result.rank == 0:
            return _exact(op, match)
        total = _sum(op, match)[-1]
        choice = scf.IfOp(_any(_may_be_tie(total)), [match.result], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.YieldOp([_exact(op, match)])
        with ir.InsertionPoint(choice.else_block):
            scf.YieldOp([arith.truncf(match.result, total)])
        return choice.results[0]


def _sum(op: ir.Operation, types: _Types) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The product, what is added and their sum, in float64."""
    a, b, c = (arith.extf(types.wide, value) for value in op.operands)
    product = arith.mulf(a, b)
    return product, c, arith.addf(product, c)


def _exact(op: ir.Operation, types: _Types) -> ir.Value:
    """The result for every sum."""
    product, addend, total = _sum(op, types)
    return arith.truncf(types.result, _rounded_to_odd(total, _lost(product, addend, total), types))


def _may_be_tie(total: ir.Value) -> ir.Value:
    """The 32-bit words of numbers, replaced by -1 where a number may lie halfway between two float32 numbers.

    The low word of such a number ends in a 1 and 28 zeros.  That holds from 2^-126 on; below, the exponent in the high
    word, 1023 - 126 = 897 there, is smaller.  Zero, whose high word is 0, is no tie.
    """
    shape = b.shape_of(total)
    type_ = ir.VectorType.get([*shape[:-1], 2 * shape[-1]], ir.IntegerType.get_signless(32))
    words = b.bitcast(type_, total)
    mask, first, count = (_pairs(type_, *pair) for pair in ((2**29 - 1, 2**31 - 1), (2**28, 1), (1, (897 << 20) - 1)))
    distance = arith.subi(arith.andi(words, mask), first)
    return arith.extsi(type_, arith.cmpi(arith.CmpIPredicate.ult, distance, count))


def _pairs(type_: ir.VectorType, low: int, high: int) -> ir.Value:
    """Words `low` and `high` in turn."""
    words = np.resize(np.array([low, high], np.int32), list(type_.shape))
    return arith.constant(type_, ir.DenseElementsAttr.get(words, type=type_))


def _any(words: ir.Value) -> ir.Value:
    """Whether a word is not 0."""
    outer = b.shape_of(words)[:-1]
    rows = [vector.extract(words, [], list(at)) for at in np.ndindex(*outer)] if outer else [words]
    row = reduce(arith.ori, rows)
    found = vector.reduction(ir.IntegerType.get_signless(32), vector.CombiningKind.OR, row)
    return arith.cmpi(arith.CmpIPredicate.ne, found, _constant(found.type, 0))


def _lost(first: ir.Value, second: ir.Value, total: ir.Value) -> ir.Value:
    """The rounding error of the sum of two numbers."""
    of_second = arith.subf(total, first)
    of_first = arith.subf(total, of_second)
    return arith.addf(arith.subf(first, of_first), arith.subf(second, of_second))


def _rounded_to_odd(total: ir.Value, lost: ir.Value, types: _Types) -> ir.Value:
    """A sum that was rounded to even, rounded to odd; one that is not finite stays, as NaN is not unequal to zero."""
    bits, lost_bits = (arith.bitcast(types.bits, value) for value in (total, lost))
    is_inexact = arith.extsi(types.bits, arith.cmpf(arith.CmpFPredicate.ONE, lost, _constant(types.wide, 0)))
    is_up = arith.shrsi(arith.xori(bits, lost_bits), _constant(types.bits, _SIGN))
    # A comparison that holds is -1.
    down = arith.addi(bits, arith.andi(is_up, is_inexact))
    return arith.bitcast(types.wide, arith.ori(down, arith.shrui(is_inexact, _constant(types.bits, _SIGN))))


def _of(type_: ir.Type, element: ir.Type) -> ir.Type:
    return ir.VectorType.get(type_.shape, element) if isinstance(type_, ir.VectorType) else element


def _constant(type_: ir.Type, value: int) -> ir.Value:
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    is_float = isinstance(element, ir.FloatType)
    number = ir.FloatAttr.get(element, float(value)) if is_float else ir.IntegerAttr.get(element, value)
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, number) if type_ != element else number)


LANES = 16
"""Lanes of a vector that the pattern matches."""


# A product with a power of two in one `vscalefps`.

SCALE = "llvm.x86.avx512.mask.scalef.ps.512"
"""(vector<16xf32>, exponents vector<16xf32>, pass-through vector<16xf32>, mask i16, rounding i32) -> vector<16xf32>."""

# Half to even, exceptions suppressed.
_ROUNDING = 8
_ROUNDS_TO_ZERO = -151.0
"""Products with an exponent of this or less round to zero."""


@dataclass(frozen=True)
class _Scaled:
    """``value * 2^k`` with `biased` = k + 254 + `ROUNDER`."""

    value: ir.Value
    biased: ir.Value


class ScaleExponent(InstructionPattern[_Scaled]):
    """``value * 2^h * 2^(k - h)`` of [..., 16 n] float32 numbers, the first product exact.

    It is tagged where k is in range.
    """

    roots = ("arith.mulf",)

    def __init__(self, masks: bool = True) -> None:
        """With `masks`, lanes whose product rounds to zero are masked out."""
        self._scale = _masked if masks else _scaled

    def check(self, op: ir.Operation) -> _Scaled | None:
        if SCALED not in op.attributes:
            return None
        first = b.defining(op.operands[0], "arith.mulf")
        # The op `name` whose result is the exponent of `value`.
        cast = b.defining(op.operands[1], "arith.bitcast")
        shifted = b.defining(cast.operands[0], "arith.shli") if cast else None
        rest = b.defining(shifted.operands[0], "arith.subi") if shifted else None
        biased = _biased(rest)
        if first is None or biased is None:
            raise MatchFailure("must be the product of a number and two powers of two")
        lanes = b.lanes_of(op.results[0])
        require(lanes % LANES == 0, f"vectors must have a multiple of 16 lanes, but got {lanes}")
        return _Scaled(first.operands[0], biased)

    def emit(self, op: ir.Operation, match: _Scaled) -> ir.Value:
        type_ = ir.VectorType(op.results[0].type)
        exponents = arith.subf(match.biased, b.splat(type_, ROUNDER + 2 * EXPONENT_BIAS))
        *outer, lanes = list(type_.shape)
        blocks = ir.VectorType.get([*outer, lanes // LANES, LANES], type_.element_type)
        values, powers = (vector.shape_cast(blocks, value) for value in (match.value, exponents))
        result = b.splat(blocks, 0.0)
        for position in np.ndindex(*list(blocks.shape)[:-1]):
            result = b.insert(self._scale(b.extract(values, position), b.extract(powers, position)), result, position)
        return vector.shape_cast(type_, result)


def _biased(rest: ir.Operation | None) -> ir.Value | None:
    """The halved operand, as a float32 number."""
    cast = b.defining(rest.operands[0], "arith.bitcast") if rest else None
    return cast.operands[0] if cast else None


def _masked(value: ir.Value, exponents: ir.Value) -> ir.Value:
    """The product, plus zero where it rounds to zero: some cores take 60 ns to find that out in the instruction.

    2^-151 times a value below 2, as a tagged product has it, is less than half of the smallest number.  NaN stays.
    """
    least = b.splat(ir.VectorType(value.type), _ROUNDS_TO_ZERO)
    lanes = arith.cmpf(arith.CmpFPredicate.UGT, exponents, least)
    mask = b.bitcast(ir.VectorType.get([1], ir.IntegerType.get_signless(16)), lanes)
    return _emit(value, exponents, b.extract_lane(mask, 0))


def _scaled(value: ir.Value, exponents: ir.Value) -> ir.Value:
    i16 = ir.IntegerType.get_signless(16)
    return _emit(value, exponents, arith.constant(i16, ir.IntegerAttr.get(i16, -1)))


def _emit(value: ir.Value, exponents: ir.Value, mask: ir.Value) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    type_ = ir.VectorType(value.type)
    rounding = arith.constant(i32, ir.IntegerAttr.get(i32, _ROUNDING))
    return b.intrinsic(SCALE, type_, value, exponents, b.splat(type_, 0.0), mask, rounding)
