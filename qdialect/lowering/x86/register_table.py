"""`vector.gather` from a table of 16 numbers of 32 bits -> `vpermd`, with the table in one or two registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qdialect._mlir import arith, ir, vector
from qdialect.lowering.memory.strides import static_strides
from qdialect.lowering.threads.accesses import constant
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.instructions.permutes import VPERMD
from qdialect.passes.pattern import MatchFailure
from qdialect.quant_math.float32.machine import ENTRIES

_BITS = 32


@dataclass(frozen=True)
class _Lookup:
    table: ir.Value
    indices: ir.Value
    """Integers of 32 bits, of which the low four say which entry."""


class RegisterTable(InstructionPattern[_Lookup]):
    """A gather from 16 floats in every lane, by integers modulo 16."""

    name: ClassVar[str] = "register-table"
    root: ClassVar[str] = "vector.gather"

    def __init__(self, lanes: int) -> None:
        """`lanes` are the 32-bit lanes of the widest vector that has a permute."""
        self._lanes = lanes

    def check(self, op: ir.Operation) -> _Lookup | MatchFailure | None:
        table, base, indices, mask, _ = op.operands
        type_ = ir.MemRefType(table.type) if isinstance(table.type, ir.MemRefType) else None
        if type_ is None or not isinstance(type_.element_type, ir.F32Type) or list(type_.shape) != [ENTRIES]:
            return None
        if static_strides(type_) != (1,) or type_.memory_space is not None:
            return MatchFailure(f"table must lie side by side in the default memory space, but got {type_}")
        if constant(base) != 0:
            return MatchFailure("base index must be 0")
        if not b.is_all_true(mask):
            return MatchFailure("mask must be true in every lane")
        source = _wrapped(indices)
        if source is None:
            return MatchFailure("indices must be cast from a vector of 32-bit integers modulo 16")
        lanes = b.shape_of(source)[-1]
        if lanes % self._lanes:
            return MatchFailure(f"vectors must have a multiple of {self._lanes} lanes, but got {lanes}")
        return _Lookup(table, source)

    def rewrite(self, op: ir.Operation, match: _Lookup) -> ir.Value:
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
            result = b.insert(vector.bitcast(own, found), result, position)
        return vector.shape_cast(type_, result)

    def _part(self, table: ir.Value, start: int) -> ir.Value:
        return vector.bitcast(b.vector_type(self._lanes, _BITS), b.load(self._lanes, table, [b.index(start)]))

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
    """The 32-bit integers that indices are modulo 16."""
    cast = b.defining(indices, "arith.index_cast") or b.defining(indices, "arith.index_castui")
    wrapped = b.defining(cast.operands[0], "arith.andi") if cast else None
    if wrapped is None or not b.is_vector_of(wrapped.operands[0], _BITS):
        return None
    return wrapped.operands[0] if b.splat_value(wrapped.operands[1]) == ENTRIES - 1 else None
