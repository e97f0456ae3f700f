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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qdialect._mlir import arith, ir, math, scf, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure

_LOOP, _READ = "scf.for", "vector.transfer_read"
_WRITES = {"vector.transfer_write": 1, "vector.store": 1, "memref.store": 1}
"""By name: which operand is the memory."""
_OTHER_WRITES = ("vector.maskedstore", "vector.compressstore", "vector.scatter", "memref.copy")
_DIALECTS = ("arith.", "math.", "vector.", "memref.", "scf.", "affine.", "ub.", "llvm.call_intrinsic")
"""Ops of all others may write anywhere; the intrinsics are those of instructions that compute."""
_VIEWS = ("memref.reinterpret_cast", "memref.subview", "memref.cast", "memref.collapse_shape", "memref.expand_shape")
_LANES = 16
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
    """[..., 16] float32 numbers divided by one that the innermost loop does not change."""

    name: ClassVar[str] = "row-division"
    root: ClassVar[str] = "arith.divf"

    def check(self, op: ir.Operation) -> _Row | MatchFailure | None:
        loop, broadcast = op.parent, b.defining(op.operands[1], "vector.broadcast")
        read = b.defining(broadcast.operands[0], _READ) if broadcast else None
        if broadcast is None or read is None or loop is None or loop.name != _LOOP:
            return None
        if b.defining(op.operands[0], "arith.constant"):
            # A reciprocal, as the rewrite emits one.
            return None
        type_ = ir.VectorType(op.results[0].type)
        if not isinstance(type_.element_type, ir.F32Type) or type_.shape[-1] != _LANES:
            return MatchFailure(f"must be of vectors of 16 lanes of f32, but got {type_}")
        if any(extent != 1 for extent in b.shape_of(broadcast.operands[0])):
            return MatchFailure("must have one divisor in a vector")
        if any(_is_inside(value, loop) for value in read.operands):
            return MatchFailure("must have a divisor that its loop does not change")
        written = [_written(inner) for inner in _inside(loop)]
        if any(memory and _base(memory) == _base(read.operands[0]) for memory in written):
            return MatchFailure("must not be in a loop that writes where the divisor is read")
        unknown = next((inner.name for inner in _inside(loop) if _may_write_anywhere(inner)), None)
        if unknown is not None:
            return MatchFailure(f"must not be in a loop with '{unknown}', which may write where the divisor is read")
        return _Row(loop, read, broadcast)

    def rewrite(self, op: ir.Operation, match: _Row) -> ir.Value:
        numbers = op.operands[0]
        type_ = ir.VectorType(numbers.type)
        with ir.InsertionPoint(match.loop):
            divisor = _hoisted(match)
            reciprocal = arith.divf(_splat(type_, 1.0), divisor)
            is_near_one = _every(_within(divisor, _LEAST_DIVISOR, _LARGEST_DIVISOR))
        choice = scf.IfOp(arith.andi(is_near_one, _every(_fits(numbers))), [type_], has_else=True)
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


def _fits(numbers: ir.Value) -> ir.Value:
    """Where a number has a quotient by fused operations: plus zero, or one of a range with either sign."""
    bits = _bits(numbers)
    is_zero = arith.cmpi(arith.CmpIPredicate.eq, bits, b.splat(ir.VectorType(bits.type), 0))
    return arith.ori(is_zero, _within(math.absf(numbers), _LEAST, _LARGEST))


def _within(numbers: ir.Value, least: float, largest: float) -> ir.Value:
    """Where a number, read as an unsigned integer as its bits are ordered, is in a range of positive numbers."""
    bits = _bits(numbers)
    type_ = ir.VectorType(bits.type)
    low, high = (int(np.float32(bound).view(np.int32)) for bound in (least, largest))
    above = arith.subi(bits, b.splat(type_, low))
    return arith.cmpi(arith.CmpIPredicate.ule, above, b.splat(type_, high - low))


def _every(lanes: ir.Value) -> ir.Value:
    """Whether all of a vector of bits are set."""
    count = int(np.prod(b.shape_of(lanes)))
    bit = ir.IntegerType.get_signless(1)
    flat = vector.shape_cast(ir.VectorType.get([count], bit), lanes)
    return vector.reduction(bit, vector.CombiningKind.AND, flat)


def _bits(numbers: ir.Value) -> ir.Value:
    shape = b.shape_of(numbers)
    return arith.bitcast(ir.VectorType.get(shape, ir.IntegerType.get_signless(32)), numbers)


def _splat(type_: ir.VectorType, value: float) -> ir.Value:
    number = ir.FloatAttr.get(type_.element_type, value)
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, number))


def _is_inside(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether `value` is defined in the body of `loop`, constants apart."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return owner.owner.operation == loop
    return owner.parent is not None and owner.parent.operation == loop


def _inside(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops in the regions of `op`, and in theirs."""
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                yield from _inside(child.operation)


def _written(op: ir.Operation) -> ir.Value | None:
    """The memory that `op` writes; None where it is none, or not known."""
    return op.operands[_WRITES[op.name]] if op.name in _WRITES else None


def _may_write_anywhere(op: ir.Operation) -> bool:
    return op.name in _OTHER_WRITES or not op.name.startswith(_DIALECTS)


def _base(memory: ir.Value) -> ir.Value:
    """What `memory` is a view of."""
    return b.looked_through(memory, *_VIEWS)
