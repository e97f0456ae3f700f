"""Products of f32 numbers with powers of two by `vscalefps`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qdialect.arithmetic.float32.machine import EXPONENT_BIAS, ROUNDER, SCALED
from qdialect.ir._mlir import arith, ir, vector
from qdialect.lowering.ir import building as b
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure

LANES = 16
"""Lanes of a vector that the pattern matches."""


def splat(type_: ir.VectorType, value: float) -> ir.Value:
    """A constant that is `value` in all lanes."""
    number = ir.FloatAttr.get(type_.element_type, value)
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, number))


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

    name: ClassVar[str] = "scale-exponent"
    roots = ("arith.mulf",)

    def __init__(self, masks: bool = True) -> None:
        """With `masks`, lanes whose product rounds to zero are masked out."""
        self._scale = _masked if masks else _scaled

    def check(self, op: ir.Operation) -> _Scaled | MatchFailure | None:
        if SCALED not in op.attributes:
            return None
        first = b.defining(op.operands[0], "arith.mulf")
        # The op `name` whose result is the exponent of `value`.
        cast = b.defining(op.operands[1], "arith.bitcast")
        shifted = b.defining(cast.operands[0], "arith.shli") if cast else None
        rest = b.defining(shifted.operands[0], "arith.subi") if shifted else None
        biased = _biased(rest)
        if first is None or biased is None:
            return MatchFailure("must be the product of a number and two powers of two")
        lanes = b.lanes_of(op.results[0])
        if lanes % LANES:
            return MatchFailure(f"vectors must have a multiple of 16 lanes, but got {lanes}")
        return _Scaled(first.operands[0], biased)

    def emit(self, op: ir.Operation, match: _Scaled) -> ir.Value:
        type_ = ir.VectorType(op.results[0].type)
        exponents = arith.subf(match.biased, splat(type_, ROUNDER + 2 * EXPONENT_BIAS))
        *outer, lanes = list(type_.shape)
        blocks = ir.VectorType.get([*outer, lanes // LANES, LANES], type_.element_type)
        values, powers = (vector.shape_cast(blocks, value) for value in (match.value, exponents))
        result = splat(blocks, 0.0)
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
    least = splat(ir.VectorType(value.type), _ROUNDS_TO_ZERO)
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
    return b.intrinsic(SCALE, type_, value, exponents, splat(type_, 0.0), mask, rounding)
