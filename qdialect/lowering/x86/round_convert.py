"""Rounding, to even or down, and conversion to integers in one `vcvtps2dq`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qdialect._mlir import arith, ir
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure

CONVERT = "llvm.x86.avx512.mask.cvtps2dq.512"
"""(vector<16xf32>, pass-through vector<16xi32>, mask i16, rounding i32) -> vector<16xi32>."""

_LANES = 16
# Exceptions suppressed: the instruction's own rounding, whatever mode the thread is in.
_ROUNDINGS = {"math.roundeven": 8, "math.floor": 9}


@dataclass(frozen=True)
class _Rounded:
    """Numbers, and how they are rounded."""

    source: ir.Value
    how: int


class RoundConvert(InstructionPattern[_Rounded]):
    """The conversion of [..., 16] float32 numbers, rounded to even or down, to 32-bit integers."""

    name: ClassVar[str] = "round-convert"
    root: ClassVar[str] = "arith.fptosi"

    def check(self, op: ir.Operation) -> _Rounded | MatchFailure | None:
        found = next((one for name in _ROUNDINGS if (one := b.defining(op.operands[0], name))), None)
        if found is None or not b.is_vector_of(op.results[0], 32):
            return None
        type_ = ir.VectorType(found.operands[0].type)
        if not isinstance(type_.element_type, ir.F32Type):
            return MatchFailure(f"numbers must be f32, but got {type_.element_type}")
        if type_.shape[-1] != _LANES:
            return MatchFailure(f"vectors must have 16 lanes, but got {type_.shape[-1]}")
        return _Rounded(found.operands[0], _ROUNDINGS[found.name])

    def rewrite(self, op: ir.Operation, match: _Rounded) -> ir.Value:
        type_ = ir.VectorType(op.results[0].type)
        result = b.splat(type_, 0)
        for position in np.ndindex(*list(type_.shape)[:-1]):
            converted = _convert(b.extract(match.source, position) if position else match.source, match.how)
            result = b.insert(converted, result, position) if position else converted
        return result


def _convert(value: ir.Value, how: int) -> ir.Value:
    i16, i32 = ir.IntegerType.get_signless(16), ir.IntegerType.get_signless(32)
    every_lane = arith.constant(i16, ir.IntegerAttr.get(i16, -1))
    rounding = arith.constant(i32, ir.IntegerAttr.get(i32, how))
    lanes = b.vector_type(_LANES, 32)
    return b.intrinsic(CONVERT, lanes, value, b.splat(lanes, 0), every_lane, rounding)
