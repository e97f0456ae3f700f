"""Rounding, to even or down, and conversion to integers in one `vcvtps2dq`; of four numbers in `cvtps2dq`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qdialect._mlir import ir, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.instructions.instruction import Instruction
from qdialect.passes.pattern import MatchFailure


@dataclass(frozen=True)
class _Rounded:
    """Numbers, and what rounds them."""

    source: ir.Value
    instruction: Instruction


class RoundConvert(InstructionPattern[_Rounded]):
    """The conversion of float32 numbers, as many as fill vectors, rounded to even or down, to 32-bit integers."""

    name: ClassVar[str] = "round-convert"
    root: ClassVar[str] = "arith.fptosi"

    def __init__(self, conversions: Mapping[str, Instruction]) -> None:
        self._conversions = conversions

    def check(self, op: ir.Operation) -> _Rounded | MatchFailure | None:
        found = next((one for name in self._conversions if (one := b.defining(op.operands[0], name))), None)
        if found is None or not b.is_vector_of(op.results[0], 32):
            return None
        type_ = ir.VectorType(found.operands[0].type)
        if not isinstance(type_.element_type, ir.F32Type):
            return MatchFailure(f"numbers must be f32, but got {type_.element_type}")
        instruction = self._conversions[found.name]
        count, lanes = instruction.result.count, b.lanes_of(found.operands[0])
        if lanes % count:
            return MatchFailure(f"vectors must have {count} lanes, but got {lanes}")
        return _Rounded(found.operands[0], instruction)

    def rewrite(self, op: ir.Operation, match: _Rounded) -> ir.Value:
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
