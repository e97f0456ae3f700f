"""`vector.gather` from a table of 256 numbers of 32 bits -> `vpermi2d`.

A gather loads lane by lane.  One permute looks up 32 entries in two registers by the low five bits of each index; eight
of them look up all entries, and seven selects on the three bits above choose among them.  Where registers are scarce
the sixteen parts of the table are loaded again, which is still a load for each lane at most.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from qdialect._mlir import arith, ir, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.instructions.permutes import VPERMI2D
from qdialect.lowering.x86.table_gather import Lookup, lookup_of, table_type
from qdialect.passes.pattern import MatchFailure

ENTRIES = 256
_BITS, _BYTE = 32, 8
_LANES = 16


class NumberTable(InstructionPattern[Lookup]):
    """A gather from 256 numbers of 32 bits, from the first one on and in every lane.

    An index beyond the table is undefined behaviour, so that the low byte of an index is all of it.
    """

    name: ClassVar[str] = "number-table"
    root: ClassVar[str] = "vector.gather"

    def check(self, op: ir.Operation) -> Lookup | MatchFailure | None:
        type_ = table_type(op, ENTRIES)
        if type_ is None or not has_numbers(type_):
            return None
        found = lookup_of(op, whole_indices, "a vector of 8 or 32-bit integers")
        if isinstance(found, MatchFailure):
            return found
        lanes = b.lanes_of(found.indices)
        if lanes % _LANES:
            return MatchFailure(f"vectors must have a multiple of {_LANES} lanes, but got {lanes}")
        return found

    def rewrite(self, op: ir.Operation, match: Lookup) -> ir.Value:
        type_ = ir.VectorType(op.results[0].type)
        *outer, lanes = list(type_.shape)
        blocks = [*outer, lanes // _LANES, _LANES]
        indices = vector.shape_cast(_integers(blocks), _as_words(match.indices))
        parts = [self._part(match.table, start) for start in range(0, ENTRIES, _LANES)]
        # Any register will do to insert into: every position is written.
        result = b.splat(_integers(blocks), 0)
        for position in np.ndindex(*blocks[:-1]):
            result = b.insert(_look_up(parts, b.extract(indices, position)), result, position)
        found = vector.shape_cast(_integers([*outer, lanes]), result)
        return found if found.type == type_ else b.bitcast(type_, found)

    def _part(self, table: ir.Value, start: int) -> ir.Value:
        return b.bitcast(b.vector_type(_LANES, _BITS), b.load(_LANES, table, [b.index(start)]))


def _look_up(parts: list[ir.Value], indices: ir.Value) -> ir.Value:
    """16 entries by as many integers."""
    found = [VPERMI2D.emit(low, indices, high) for low, high in zip(parts[0::2], parts[1::2], strict=True)]
    type_, bit = ir.VectorType(indices.type), 2 * _LANES
    while len(found) > 1:
        is_set = arith.cmpi(arith.CmpIPredicate.ne, arith.andi(indices, b.splat(type_, bit)), b.splat(type_, 0))
        found = [arith.select(is_set, high, low) for low, high in zip(found[0::2], found[1::2], strict=True)]
        bit *= 2
    return found[0]


def whole_indices(indices: ir.Value) -> ir.Value | None:
    """`indices` where they are integers of 8 or 32 bits."""
    return indices if any(b.is_vector_of(indices, bits) for bits in (_BYTE, _BITS)) else None


def _as_words(indices: ir.Value) -> ir.Value:
    if b.is_vector_of(indices, _BITS):
        return indices
    return arith.extui(_integers(b.shape_of(indices)), indices)


def _integers(shape: list[int]) -> ir.VectorType:
    return ir.VectorType.get(shape, ir.IntegerType.get_signless(_BITS))


def has_numbers(table: ir.MemRefType) -> bool:
    """Whether entries are floats or integers of 32 bits."""
    return isinstance(table.element_type, ir.F32Type) or b.is_integer(table.element_type, _BITS)
