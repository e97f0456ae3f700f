"""Vectors of f32 numbers rounded where no instruction does that, as on CPUs before SSE4.1.

LLVM calls a function of the C library for each number there.  From 2^23 on every number is an integer.  A smaller one,
x, is converted to an integer and back, which is t, x without its fraction: exact, as 24 bits hold it.  Then

  to zero   t
  down      t, less 1 where t > x
  up        t, plus 1 where t < x
  to even   |x| + 2^23 - 2^23, as the sum has no bit for a fraction and is rounded to even

and the sign of x, which also a zero keeps.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from qdialect._mlir import arith, ir, math
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure

_INTEGERS = 2.0**23
"""The least number from which on all are integers."""
_Float = arith.CmpFPredicate


class _VectorRounding(InstructionPattern[ir.VectorType]):
    """One way of rounding vectors of f32 numbers."""

    def check(self, op: ir.Operation) -> ir.VectorType | MatchFailure | None:
        type_ = op.results[0].type
        if not isinstance(type_, ir.VectorType):
            return None
        if not isinstance(type_.element_type, ir.F32Type):
            return MatchFailure(f"numbers must be f32, but got {type_.element_type}")
        return type_

    def rewrite(self, op: ir.Operation, match: ir.VectorType) -> ir.Value:
        source = op.operands[0]
        has_fraction = arith.cmpf(_Float.OLT, math.absf(source), _splat(match, _INTEGERS))
        # What 32 bits do not hold must not be converted.
        small = arith.select(has_fraction, source, _splat(match, 0.0))
        return arith.select(has_fraction, math.copysign(self.rounded(small, match), source), source)

    @abstractmethod
    def rounded(self, small: ir.Value, type_: ir.VectorType) -> ir.Value:
        """Numbers less than 2^23, rounded; the sign of a zero does not matter."""


class RoundEven(_VectorRounding):
    """To even."""

    name: ClassVar[str] = "vector-round-even"
    root: ClassVar[str] = "math.roundeven"

    def rounded(self, small: ir.Value, type_: ir.VectorType) -> ir.Value:
        integers = _splat(type_, _INTEGERS)
        return arith.subf(arith.addf(math.absf(small), integers), integers)


class RoundDown(_VectorRounding):
    """Down."""

    name: ClassVar[str] = "vector-round-down"
    root: ClassVar[str] = "math.floor"

    def rounded(self, small: ir.Value, type_: ir.VectorType) -> ir.Value:
        whole = _without_fraction(small, type_)
        return arith.subf(whole, _one_where(_Float.OGT, whole, small, type_))


class RoundUp(_VectorRounding):
    """Up."""

    name: ClassVar[str] = "vector-round-up"
    root: ClassVar[str] = "math.ceil"

    def rounded(self, small: ir.Value, type_: ir.VectorType) -> ir.Value:
        whole = _without_fraction(small, type_)
        return arith.addf(whole, _one_where(_Float.OLT, whole, small, type_))


class RoundToZero(_VectorRounding):
    """To zero."""

    name: ClassVar[str] = "vector-round-to-zero"
    root: ClassVar[str] = "math.trunc"

    def rounded(self, small: ir.Value, type_: ir.VectorType) -> ir.Value:
        return _without_fraction(small, type_)


def _without_fraction(small: ir.Value, type_: ir.VectorType) -> ir.Value:
    integers = ir.VectorType.get(type_.shape, ir.IntegerType.get_signless(32))
    return arith.sitofp(type_, arith.fptosi(integers, small))


def _one_where(how: arith.CmpFPredicate, left: ir.Value, right: ir.Value, type_: ir.VectorType) -> ir.Value:
    return arith.select(arith.cmpf(how, left, right), _splat(type_, 1.0), _splat(type_, 0.0))


def _splat(type_: ir.VectorType, value: float) -> ir.Value:
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(type_.element_type, value)))
