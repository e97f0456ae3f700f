"""Divisions of many f32 numbers by one, as products with its reciprocal that are made exact."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from functools import reduce

import numpy as np

from qdialect.ir._mlir import arith, ir, math, scf, vector
from qdialect.lowering.ir import building as b
from qdialect.lowering.qnn_to_linalg.program.scalar_body import ROUNDED
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern, require_f32
from qdialect.passes.pattern import require

# Markstein's division: with z = RN(1 / d), the reciprocal rounded to nearest,
#
#   q = RN(n z)    r = RN(q d - n)    RN(q - r z) = RN(n / d)
#
# r is exact where no last place is below 2^-149, so that the sum which is rounded at the end, q - r z, errs by
#
#   |q - r z - n / d| = |q - n / d| |d z - 1|.
#
# Let n and d be in [1, 2), which scaling by powers of two reaches.  1 / d is in (1/2, 1] and z within 2^-25 of it.
# Where n < d, q is within (n + 2) 2^-25 of n / d, and the sum within (n + 2) d 2^-50.  The last place of the result is
# 2^-24.  Halfway between two such numbers is an m of 25 bits.  n - m d is a multiple of 2^-48: if it is k times that,
# n / d is k 2^-48 / d from m, so that the sum can be on the other side only for |k| < (n + 2) d^2 / 4 < 4.  Where
# n >= d, the last bit of m is 2^-24, n - m d is k times 2^-47, and |k| < (n + 2) d^2 / 8 < 2.  For each d and k few n
# and m satisfy that.  The test computes all of them, and none is wrong.
#
# A zero keeps its sign if d is positive, as r is +0 and the sum is q; NaN stays NaN.  What remains is an n too large or
# too small, which includes infinities, and such a d or a negative one: then the vector is divided.  Where the quotient
# is rounded to an integer of few bits next, a small n matters no more, and q stands for a quotient that is infinite.

_LEAST, _MOST = 2.0**-100, 2.0**100
"""Magnitudes of n, other than zero, for which nothing overflows and r is exact, with d between these:"""
_LEAST_DIVISOR, _MOST_DIVISOR = 2.0**-24, 2.0**24
_ROW = 16
_TOGETHER = 4
"""Rows with one branch: their numbers stay in registers."""


class InvariantDivision(InstructionPattern[ir.Value]):
    """The division of vectors of f32 numbers by a number that is broadcast to 16 lanes or more.

    The match is what is broadcast, a number or a vector of several.
    """

    roots = ("arith.divf",)

    def check(self, op: ir.Operation) -> ir.Value | None:
        type_ = op.results[0].type
        broadcast = b.defining(op.operands[1], "vector.broadcast")
        # The division of what is out of range, too, is one in a branch.
        is_in_branch = op.parent is not None and op.parent.name == "scf.if"
        if broadcast is None or not isinstance(type_, ir.VectorType) or is_in_branch:
            return None
        require_f32(type_.element_type)
        source = broadcast.operands[0]
        count = numbers.prod(b.shape_of(source)) if _is_vector(source) else 1
        is_many = type_.shape[-1] % _ROW == 0 and numbers.prod(type_.shape) >= _ROW * count
        require(is_many, f"each divisor must divide a multiple of {_ROW} numbers, but got {type_} for {count}")
        return source

    def emit(self, op: ir.Operation, match: ir.Value) -> ir.Value:
        numerator, divisor = op.operands
        type_ = ir.VectorType(op.results[0].type)
        source = _number(match)
        reciprocal = vector.broadcast(type_, arith.divf(_constant(source.type, 1.0), source))
        rows = [*zip(_rows(numerator), _rows(divisor), _rows(reciprocal), strict=True)]
        if ROUNDED in op.attributes:
            found = [_rounded_quotient(*row) for row in rows]
        else:
            # That holds of a negative divisor, too.
            is_divided = _any(_is_outside(_bits(source), _LEAST_DIVISOR, _MOST_DIVISOR))
            groups = [rows[first : first + _TOGETHER] for first in range(0, len(rows), _TOGETHER)]
            found = [quotient for group in groups for quotient in _quotients(group, is_divided)]
        by_row = b.splat(ir.VectorType.get([len(rows), _ROW], type_.element_type), 0.0)
        for position, row in enumerate(found):
            by_row = b.insert(row, by_row, [position])
        return vector.shape_cast(type_, by_row)


_Row = tuple[ir.Value, ir.Value, ir.Value]
"""Numbers, what they are divided by, and its reciprocal."""


def _rows(value: ir.Value) -> list[ir.Value]:
    count = numbers.prod(b.shape_of(value)) // _ROW
    rows = vector.shape_cast(ir.VectorType.get([count, _ROW], ir.F32Type.get()), value)
    return [b.extract(rows, [position]) for position in range(count)]


def _quotients(rows: Sequence[_Row], is_divided: ir.Value) -> Sequence[ir.Value]:
    """Quotients of several rows, which one branch divides if one of them is out of range, or all are: `is_divided`."""
    outside = reduce(arith.ori, (_is_out_of_range(numerator) for numerator, _, _ in rows))
    choice = scf.IfOp(arith.ori(_any(outside), is_divided), [row[0].type for row in rows], has_else=True)
    with ir.InsertionPoint(choice.then_block):
        scf.YieldOp([arith.divf(numerator, divisor) for numerator, divisor, _ in rows])
    with ir.InsertionPoint(choice.else_block):
        scf.YieldOp([_quotient(*row) for row in rows])
    return list(choice.results)


def _number(source: ir.Value) -> ir.Value:
    """A vector of one element as a number."""
    if not _is_vector(source) or numbers.prod(b.shape_of(source)) > 1:
        return source
    return vector.extract(source, [], [0] * ir.VectorType(source.type).rank)


def _quotient(numerator: ir.Value, divisor: ir.Value, reciprocal: ir.Value) -> ir.Value:
    first = arith.mulf(numerator, reciprocal)
    rest = math.fma(first, divisor, arith.negf(numerator))
    return math.fma(arith.negf(rest), reciprocal, first)


def _rounded_quotient(numerator: ir.Value, divisor: ir.Value, reciprocal: ir.Value) -> ir.Value:
    first, found = arith.mulf(numerator, reciprocal), _quotient(numerator, divisor, reciprocal)
    return arith.select(arith.cmpf(arith.CmpFPredicate.ORD, found, found), found, first)


def _is_out_of_range(numerator: ir.Value) -> ir.Value:
    bits = _bits(numerator)
    magnitude = arith.andi(bits, _constant(bits.type, 2**31 - 1))
    return arith.andi(_is_outside(magnitude, _LEAST, _MOST), _compare("ne", magnitude, 0))


def _bits(value: ir.Value) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    return arith.bitcast(ir.VectorType.get(b.shape_of(value), i32) if _is_vector(value) else i32, value)


def _is_vector(value: ir.Value) -> bool:
    return isinstance(value.type, ir.VectorType)


def _is_outside(bits: ir.Value, least: float, most: float) -> ir.Value:
    """Whether numbers are not between two, both positive, whose bits are in the order of these."""
    low, high = (int(np.float32(bound).view(np.int32)) for bound in (least, most))
    return _compare("ugt", arith.subi(bits, _constant(bits.type, low)), high - low)


def _compare(how: str, value: ir.Value, number: int) -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate[how], value, _constant(value.type, number))


def _any(mask: ir.Value) -> ir.Value:
    """Whether an element of a mask is true."""
    if not _is_vector(mask):
        return mask
    i1 = ir.IntegerType.get_signless(1)
    row = vector.shape_cast(ir.VectorType.get([numbers.prod(b.shape_of(mask))], i1), mask)
    return vector.reduction(i1, vector.CombiningKind.OR, row)


def _constant(type_: ir.Type, value: float) -> ir.Value:
    if isinstance(type_, ir.VectorType):
        return b.splat(type_, value)
    if isinstance(type_, ir.FloatType):
        return arith.constant(type_, ir.FloatAttr.get(type_, value))
    return arith.constant(type_, ir.IntegerAttr.get(type_, int(value)))
