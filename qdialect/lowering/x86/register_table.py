"""`vector.gather` from a table of 16 numbers of 32 bits -> `vpermd`, with the table in one or two registers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from qdialect._mlir import arith, ir, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.instructions.permutes import VPERMD
from qdialect.lowering.x86.table_gather import Lookup, lookup_of, table_type
from qdialect.passes.pattern import MatchFailure
from qdialect.quant_math.float32.machine import ENTRIES

_BITS = 32


class RegisterTable(InstructionPattern[Lookup]):
    """A gather from 16 floats in every lane, by integers modulo 16."""

    name: ClassVar[str] = "register-table"
    root: ClassVar[str] = "vector.gather"

    def __init__(self, lanes: int) -> None:
        """`lanes` are the 32-bit lanes of the widest vector that has a permute."""
        self._lanes = lanes

    def check(self, op: ir.Operation) -> Lookup | MatchFailure | None:
        type_ = table_type(op, ENTRIES)
        if type_ is None or not isinstance(type_.element_type, ir.F32Type):
            return None
        found = lookup_of(op, _wrapped, "a vector of 32-bit integers modulo 16")
        if isinstance(found, MatchFailure):
            return found
        lanes = b.lanes_of(found.indices)
        if lanes % self._lanes:
            return MatchFailure(f"vectors must have a multiple of {self._lanes} lanes, but got {lanes}")
        return found

    def rewrite(self, op: ir.Operation, match: Lookup) -> ir.Value:
        type_ = ir.VectorType(op.results[0].type)
        *outer, lanes = list(type_.shape)
        own = ir.VectorType.get([self._lanes], type_.element_type)
        parts = [self._part(match.table, start) for start in range(0, ENTRIES, self._lanes)]
        # Any register will do to insert into: every position is written.
        zero = ir.FloatAttr.get(type_.element_type, 0.0)
        blocks = [*outer, lanes // self._lanes, self._lanes]
        split = ir.VectorType.get(blocks, type_.element_type)
        indices = vector.shape_cast(
            ir.VectorType.get(blocks, ir.VectorType(match.indices.type).element_type), match.indices
        )
        result = arith.constant(split, ir.DenseElementsAttr.get_splat(split, zero))
        for position in np.ndindex(*blocks[:-1]):
            found = self._look_up(parts, b.extract(indices, position))
            result = b.insert(b.bitcast(own, found), result, position)
        return vector.shape_cast(type_, result)

    def _part(self, table: ir.Value, start: int) -> ir.Value:
        return b.bitcast(b.vector_type(self._lanes, _BITS), b.load(self._lanes, table, [b.index(start)]))

    def _look_up(self, parts: list[ir.Value], indices: ir.Value) -> ir.Value:
        """Entries by 32-bit integers; where a register holds half of the table, their fourth bit selects one."""
        found = [VPERMD[self._lanes].emit(part, indices) for part in parts]
        if len(found) == 1:
            return found[0]
        low, high = found
        type_ = ir.VectorType(indices.type)
        bit = arith.andi(indices, b.splat(type_, self._lanes))
        return arith.select(arith.cmpi(arith.CmpIPredicate.ne, bit, b.splat(type_, 0)), high, low)


def _wrapped(indices: ir.Value) -> ir.Value | None:
    """The 32-bit integers that `indices` are modulo 16."""
    wrapped = b.defining(indices, "arith.andi")
    if wrapped is None or not b.is_vector_of(wrapped.operands[0], _BITS):
        return None
    return wrapped.operands[0] if b.splat_value(wrapped.operands[1]) == ENTRIES - 1 else None
