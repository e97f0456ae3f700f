"""Rounding, to even or down, and conversion to integers in one `vcvtps2dq`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qdialect._mlir import ir
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.instructions.conversions import VCVTPS2DQ
from qdialect.lowering.x86.instructions.instruction import Instruction
from qdialect.passes.pattern import MatchFailure

_LANES = 16


@dataclass(frozen=True)
class _Rounded:
    """Numbers, and what rounds them."""

    source: ir.Value
    instruction: Instruction


class RoundConvert(InstructionPattern[_Rounded]):
    """The conversion of [..., 16] float32 numbers, rounded to even or down, to 32-bit integers."""

    name: ClassVar[str] = "round-convert"
    root: ClassVar[str] = "arith.fptosi"

    def check(self, op: ir.Operation) -> _Rounded | MatchFailure | None:
        found = next((one for name in VCVTPS2DQ if (one := b.defining(op.operands[0], name))), None)
        if found is None or not b.is_vector_of(op.results[0], 32):
            return None
        type_ = ir.VectorType(found.operands[0].type)
        if not isinstance(type_.element_type, ir.F32Type):
            return MatchFailure(f"numbers must be f32, but got {type_.element_type}")
        lanes = b.lanes_of(found.operands[0])
        if lanes != _LANES:
            return MatchFailure(f"vectors must have 16 lanes, but got {lanes}")
        return _Rounded(found.operands[0], VCVTPS2DQ[found.name])

    def rewrite(self, op: ir.Operation, match: _Rounded) -> ir.Value:
        type_ = ir.VectorType(op.results[0].type)
        result = b.splat(type_, 0)
        for position in np.ndindex(*list(type_.shape)[:-1]):
            row = b.extract(match.source, position) if position else match.source
            converted = match.instruction.emit(row)
            result = b.insert(converted, result, position) if position else converted
        return result
