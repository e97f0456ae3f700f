"""Divisions of float32 numbers by a short constant -> two products, where the divider is slow.

See `quant_math.short_reciprocal`.  Vectors with a smaller number than it allows are divided.
"""

from __future__ import annotations

from typing import ClassVar

from qdialect._mlir import arith, ir, math, scf
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.float_lanes import LANES, as_integer, bits_of, every, folded, splat
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure
from qdialect.quant_math.short_reciprocal import LEAST, ShortReciprocal

DIVIDED = "qnn.divided"
"""On a division that stays one."""


class ConstantDivision(InstructionPattern[ShortReciprocal]):
    """[..., 16 n] float32 numbers divided by one constant with an odd part of few bits, such as 6 or 49."""

    name: ClassVar[str] = "constant-division"
    root: ClassVar[str] = "arith.divf"

    def check(self, op: ir.Operation) -> ShortReciprocal | MatchFailure | None:
        divisor = _splat_of(op.operands[1])
        if divisor is None or DIVIDED in op.attributes:
            return None
        type_ = op.results[0].type
        if not isinstance(type_, ir.VectorType) or not isinstance(type_.element_type, ir.F32Type):
            return None
        if b.lanes_of(op.results[0]) % LANES:
            return MatchFailure(f"must be of vectors of a multiple of 16 lanes, but got {type_}")
        reciprocal = ShortReciprocal.of(divisor)
        return reciprocal or MatchFailure(
            f"must have a divisor from 2^-20 to 2^20 of 2 to 19 bits, but got {divisor:g}"
        )

    def rewrite(self, op: ir.Operation, match: ShortReciprocal) -> ir.Value:
        numbers, divisor = op.operands
        type_ = ir.VectorType(numbers.type)
        choice = scf.IfOp(_fit(numbers), [type_], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            rest = arith.mulf(numbers, splat(type_, match.low))
            scf.YieldOp([math.fma(numbers, splat(type_, match.high), rest)])
        with ir.InsertionPoint(choice.else_block):
            quotient = arith.divf(numbers, divisor)
            quotient.owner.attributes[DIVIDED] = ir.UnitAttr.get()
            scf.YieldOp([quotient])
        return choice.results[0]


def _splat_of(value: ir.Value) -> float | None:
    """The number of a constant that is the same in all lanes."""
    constant = b.defining(value, "arith.constant")
    attribute = constant.attributes["value"] if constant else None
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return None
    number = attribute.get_splat_value()
    return ir.FloatAttr(number).value if isinstance(number, ir.FloatAttr) else None


def _fit(numbers: ir.Value) -> ir.Value:
    """Whether all numbers are zeros or not too small: 2 |a| as an integer, from which 1 is subtracted, wraps at 0."""
    bits = bits_of(numbers)
    type_ = ir.VectorType(bits.type)
    sizes = arith.subi(arith.shli(bits, b.splat(type_, 1)), b.splat(type_, 1))
    smallest = folded(arith.minui, sizes)
    bound = b.splat(ir.VectorType(smallest.type), 2 * as_integer(LEAST) - 1)
    return every(arith.cmpi(arith.CmpIPredicate.uge, smallest, bound))
