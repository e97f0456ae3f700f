"""Divisions of a row of float32 numbers by one number -> products with its reciprocal, where the divider is slow.

With y = 1 / b, rounded, three fused operations have the bits of a / b (Markstein, "Computation of elementary functions
on the IBM RISC System/6000 processor", 1990):

    q = a y        r = b q - a        a / b = q - r y

Let a and b be in [1, 2), u the last place of a / b.  |y - 1/b| is at most 2^-25, so that q is within 3/2 u of a / b,
and q - r y before it is rounded within |a / b - q| |b y - 1|, at most 3/2 u b 2^-25, and a fraction 2^-24 of u more
where r is rounded.  That is wrong only where a midpoint m of two numbers lies in between.  a and b m are multiples of
2^-48 (2^-47 where a >= b) and differ, since no quotient is a midpoint: |a / b - m| is j 2^-48 / b with j >= 1, and at
most 5 where m is that near.  There q is one of the numbers beside m, because |a y - m| < u, so r is exact, |a / b - q|
is at most u / 2 + |a / b - m|, and the error times b

    (2^-25 + j 2^-48 / b) b^2 2^-25 = b^2 2^-50 + j b 2^-73 < j 2^-48        for b <= 2 - 2^-23

is less than what separates a / b from m.  Powers of two change nothing while y, q and what r is made of are normal
numbers or multiples of the smallest one: for b in [2^-20, 2^20] and |a| in [2^-100, 2^100].  Of a zero q is a zero
with its sign and r is plus zero, so that q - r y is q.  Vectors with any other number are divided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect._mlir import arith, ir, math, scf, vector
from qdialect.lowering.ir.loops import LOOP
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.float_lanes import LANES, as_integer, bits_of, every, folded, splat
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.loop_writes import READ, change_problem, writes_to
from qdialect.passes.pattern import MatchFailure

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

    def __init__(self, in_place_alone: bool = False) -> None:
        """`in_place_alone` says whether rows are left to the divider that are not written where they were read."""
        self._in_place_alone = in_place_alone

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
        if self._in_place_alone and not _is_in_place(op.operands[0], loop):
            return MatchFailure("must be of numbers that its loop writes where it reads them")
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
            rest = math.fma(divisor, quotient, arith.negf(numbers))
            scf.YieldOp([math.fma(arith.negf(rest), reciprocal, quotient)])
        with ir.InsertionPoint(choice.else_block):
            scf.YieldOp([arith.divf(numbers, divisor)])
        return choice.results[0]


def _is_in_place(numbers: ir.Value, loop: ir.Operation) -> bool:
    read = b.defining(numbers, READ)
    return read is not None and writes_to(loop, read.operands[0])


def _hoisted(match: _Row) -> ir.Value:
    """The divisor, read before the loop."""
    read = match.read.clone()
    return vector.broadcast(match.broadcast.results[0].type, read.results[0])


def _fit(numbers: ir.Value) -> ir.Value:
    """Whether all numbers have a quotient by fused operations: zero, or one of a range, with either sign.

    The bits of |a| less 1 are the largest unsigned integer for zero alone, and the least signed one.
    """
    # As a float operation: LLVM would load the same numbers as integers once more.
    bits = bits_of(math.absf(numbers))
    below = arith.subi(bits, b.splat(ir.VectorType(bits.type), 1))
    least, largest = folded(arith.minui, below), folded(arith.maxsi, below)
    vector_type = ir.VectorType(least.type)
    low, high = (b.splat(vector_type, as_integer(bound) - 1) for bound in (_LEAST, _LARGEST))
    is_large_enough = arith.cmpi(arith.CmpIPredicate.uge, least, low)
    return every(arith.andi(is_large_enough, arith.cmpi(arith.CmpIPredicate.sle, largest, high)))


def _within(numbers: ir.Value, least: float, largest: float) -> ir.Value:
    """Where a number, read as an unsigned integer as its bits are ordered, is in a range of positive numbers."""
    bits = bits_of(numbers)
    type_ = ir.VectorType(bits.type)
    low, high = as_integer(least), as_integer(largest)
    above = arith.subi(bits, b.splat(type_, low))
    return arith.cmpi(arith.CmpIPredicate.ule, above, b.splat(type_, high - low))
