"""Divisions of a row of float32 numbers by one number -> products with its reciprocal, where the divider is slow.

With y = 1 / b, rounded, three fused operations have the bits of a / b (Markstein, "Computation of elementary functions
on the IBM RISC System/6000 processor", 1990):

    q = a y        r = a - b q        a / b = q + r y

Let a and b be in [1, 2), u the last place of a / b.  |y - 1/b| is at most 2^-25, so that q is within 3/2 u of a / b,
and q + r y before it is rounded within |a / b - q| |b y - 1|, at most 3/2 u b 2^-25, and a fraction 2^-24 of u more
where r is rounded.  That is wrong only where a midpoint m of two numbers lies in between.  a and b m are multiples of
2^-48 (2^-47 where a >= b) and differ, since no quotient is a midpoint: |a / b - m| is j 2^-48 / b with j >= 1, and at
most 5 where m is that near.  There q is one of the numbers beside m, because |a y - m| < u, so r is exact, |a / b - q|
is at most u / 2 + |a / b - m|, and the error times b

    (2^-25 + j 2^-48 / b) b^2 2^-25 = b^2 2^-50 + j b 2^-73 < j 2^-48        for b <= 2 - 2^-23

is less than what separates a / b from m.  Powers of two change nothing while y, q and what r is made of are normal
numbers or multiples of the smallest one: for b in [2^-20, 2^20] and |a| in [2^-100, 2^100].  A zero with a plus sign
stays one.  Vectors with any other number are divided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect._mlir import arith, ir, math, scf, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.float_lanes import LANES, as_integer, bits_of, every, folded, splat
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.loop_writes import LOOP, READ, change_problem
from qdialect.passes.pattern import MatchFailure

_INSTRUCTIONS = 8
"""Of a vector: three fused operations, and five that compare the numbers with their bounds."""
_LEAST_DIVISOR, _LARGEST_DIVISOR = 2.0**-20, 2.0**20
_LEAST, _LARGEST = 2.0**-100, 2.0**100


@dataclass(frozen=True)
class _Row:
    """A division in a loop that reads its divisor again in every iteration."""

    loop: ir.Operation
    read: ir.Operation
    broadcast: ir.Operation


class RowDivision(InstructionPattern[_Row]):
    """[..., 16 n] float32 numbers divided by one that the innermost loop does not change."""

    name: ClassVar[str] = "row-division"
    root: ClassVar[str] = "arith.divf"

    def check(self, op: ir.Operation) -> _Row | MatchFailure | None:
        loop, broadcast = op.parent, b.defining(op.operands[1], "vector.broadcast")
        read = b.defining(broadcast.operands[0], READ) if broadcast else None
        if broadcast is None or read is None or loop is None or loop.name != LOOP:
            return None
        if b.defining(op.operands[0], "arith.constant"):
            # A reciprocal, as the rewrite emits one.
            return None
        type_ = ir.VectorType(op.results[0].type)
        if not isinstance(type_.element_type, ir.F32Type) or b.lanes_of(op.results[0]) % LANES:
            return MatchFailure(f"must be of vectors of a multiple of 16 lanes of f32, but got {type_}")
        if any(extent != 1 for extent in b.shape_of(broadcast.operands[0])):
            return MatchFailure("must have one divisor in a vector")
        problem = change_problem(read, loop, "divisor")
        return MatchFailure(problem) if problem else _Row(loop, read, broadcast)

    def rewrite(self, op: ir.Operation, match: _Row) -> ir.Value:
        numbers = op.operands[0]
        type_ = ir.VectorType(numbers.type)
        with ir.InsertionPoint(match.loop):
            divisor = _hoisted(match)
            reciprocal = arith.divf(splat(type_, 1.0), divisor)
            is_near_one = every(_within(divisor, _LEAST_DIVISOR, _LARGEST_DIVISOR))
        choice = scf.IfOp(arith.andi(is_near_one, _fit(numbers)), [type_], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            quotient = arith.mulf(numbers, reciprocal)
            rest = math.fma(arith.negf(divisor), quotient, numbers)
            scf.YieldOp([math.fma(rest, reciprocal, quotient)])
        with ir.InsertionPoint(choice.else_block):
            scf.YieldOp([arith.divf(numbers, divisor)])
        return choice.results[0]


def is_faster(division_cycles: int, vector_instructions: int) -> bool:
    """Whether a core that starts so many vector instructions a cycle divides more slowly than it multiplies."""
    return division_cycles * vector_instructions > _INSTRUCTIONS


def _hoisted(match: _Row) -> ir.Value:
    """The divisor, read before the loop."""
    read = match.read.clone()
    return vector.broadcast(match.broadcast.results[0].type, read.results[0])


def _fit(numbers: ir.Value) -> ir.Value:
    """Whether all numbers have a quotient by fused operations: plus zero, or one of a range with either sign.

    An integer rotated to the left, 2 |a| + sign, is 0 for plus zero alone, and wraps around where 1 is subtracted.
    """
    bits = bits_of(numbers)
    type_ = ir.VectorType(bits.type)
    sign = arith.shrui(bits, b.splat(type_, 31))
    rotated = arith.ori(arith.shli(bits, b.splat(type_, 1)), sign)
    low, high = as_integer(_LEAST), as_integer(_LARGEST)
    least = folded(arith.minui, arith.subi(rotated, b.splat(type_, 1)))
    largest = folded(arith.maxui, rotated)
    above = arith.cmpi(arith.CmpIPredicate.uge, least, b.splat(ir.VectorType(least.type), 2 * low - 1))
    below = arith.cmpi(arith.CmpIPredicate.ule, largest, b.splat(ir.VectorType(least.type), 2 * high + 1))
    return every(arith.andi(above, below))


def _within(numbers: ir.Value, least: float, largest: float) -> ir.Value:
    """Where a number, read as an unsigned integer as its bits are ordered, is in a range of positive numbers."""
    bits = bits_of(numbers)
    type_ = ir.VectorType(bits.type)
    low, high = as_integer(least), as_integer(largest)
    above = arith.subi(bits, b.splat(type_, low))
    return arith.cmpi(arith.CmpIPredicate.ule, above, b.splat(type_, high - low))
