"""`vector.gather` from tables of 32-bit numbers -> permutes of registers; and the conditions of all table patterns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qdialect.arithmetic.float32.machine import ENTRIES
from qdialect.ir._mlir import arith, ir, vector
from qdialect.lowering.instructions.lanes import VPERMD, VPERMI2D
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.functions import constant
from qdialect.lowering.ir.views import static_strides
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure

# `vector.gather` from a table: the conditions of every pattern that looks entries up in registers.


@dataclass(frozen=True)
class Lookup:
    """A gather from all of a table, and in every lane."""

    table: ir.Value
    indices: ir.Value
    """Integers whose low bits select the entry."""


def table_type(gather: ir.Operation, entries: int) -> ir.MemRefType | None:
    """The type of the buffer that `gather` reads; None if it does not have the number of entries."""
    type_ = gather.operands[0].type
    return type_ if isinstance(type_, ir.MemRefType) and list(type_.shape) == [entries] else None


def lookup_of(
    gather: ir.Operation, integers: Callable[[ir.Value], ir.Value | None], wanted: str
) -> Lookup | MatchFailure:
    """The lookup of `gather` in a buffer, from its first entry on.

    `integers` finds the integers of the lookup behind casts of the indices, or None if they are not as `wanted`.
    """
    table, base, indices, mask, _ = gather.operands
    type_, start = ir.MemRefType(table.type), constant(base)
    if static_strides(type_) != (1,) or type_.memory_space is not None:
        return MatchFailure(f"table must lie side by side in the default memory space, but got {type_}")
    if start != 0:
        return MatchFailure(f"base index must be 0, but got {'a variable' if start is None else start}")
    if not b.is_all_true(mask):
        return MatchFailure("mask must be true in every lane")
    cast = b.defining(indices, "arith.index_cast") or b.defining(indices, "arith.index_castui")
    found = integers(cast.operands[0]) if cast else None
    return Lookup(table, found) if found is not None else MatchFailure(f"indices must be cast from {wanted}")


# `vector.gather` from a table of 16 numbers of 32 bits -> `vpermd`, with the table in one or two registers.

_BITS = 32


class RegisterTable(InstructionPattern[Lookup]):
    """A gather from 16 floats in every lane, by integers modulo 16."""

    name: ClassVar[str] = "register-table"
    roots = ("vector.gather",)

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

    def emit(self, op: ir.Operation, match: Lookup) -> ir.Value:
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


# `vector.gather` from a table of 256 numbers of 32 bits -> `vpermi2d`.
#
# A gather loads lane by lane.  One permute looks up 32 entries in two registers by the low five bits of each index;
# eight of them look up all entries, and seven selects on the three bits above choose among them.  Where registers are
# scarce the sixteen parts of the table are reloaded, which is still at most one load per lane.

BYTE_ENTRIES = 256
_NUMBER_BITS, _BYTE = 32, 8
_LANES = 16


class NumberTable(InstructionPattern[Lookup]):
    """A gather from 256 numbers of 32 bits, from the first one on and in every lane.

    An index beyond the table is undefined behaviour, so that the low byte of an index is all of it.
    """

    name: ClassVar[str] = "number-table"
    roots = ("vector.gather",)

    def check(self, op: ir.Operation) -> Lookup | MatchFailure | None:
        type_ = table_type(op, BYTE_ENTRIES)
        if type_ is None or not has_numbers(type_):
            return None
        found = lookup_of(op, whole_indices, "a vector of 8 or 32-bit integers")
        if isinstance(found, MatchFailure):
            return found
        lanes = b.lanes_of(found.indices)
        if lanes % _LANES:
            return MatchFailure(f"vectors must have a multiple of {_LANES} lanes, but got {lanes}")
        return found

    def emit(self, op: ir.Operation, match: Lookup) -> ir.Value:
        type_ = ir.VectorType(op.results[0].type)
        *outer, lanes = list(type_.shape)
        blocks = [*outer, lanes // _LANES, _LANES]
        indices = vector.shape_cast(_integers(blocks), _as_words(match.indices))
        parts = [self._part(match.table, start) for start in range(0, BYTE_ENTRIES, _LANES)]
        # Any register will do to insert into: every position is written.
        result = b.splat(_integers(blocks), 0)
        for position in np.ndindex(*blocks[:-1]):
            result = b.insert(_look_up(parts, b.extract(indices, position)), result, position)
        found = vector.shape_cast(_integers([*outer, lanes]), result)
        return found if found.type == type_ else b.bitcast(type_, found)

    def _part(self, table: ir.Value, start: int) -> ir.Value:
        return b.bitcast(b.vector_type(_LANES, _NUMBER_BITS), b.load(_LANES, table, [b.index(start)]))


def _look_up(parts: list[ir.Value], indices: ir.Value) -> ir.Value:
    """16 entries by 16 integers."""
    found = [VPERMI2D.emit(low, indices, high) for low, high in zip(parts[0::2], parts[1::2], strict=True)]
    type_, bit = ir.VectorType(indices.type), 2 * _LANES
    while len(found) > 1:
        is_set = arith.cmpi(arith.CmpIPredicate.ne, arith.andi(indices, b.splat(type_, bit)), b.splat(type_, 0))
        found = [arith.select(is_set, high, low) for low, high in zip(found[0::2], found[1::2], strict=True)]
        bit *= 2
    return found[0]


def whole_indices(indices: ir.Value) -> ir.Value | None:
    """`indices` where they are integers of 8 or 32 bits."""
    return indices if any(b.is_vector_of(indices, bits) for bits in (_BYTE, _NUMBER_BITS)) else None


def _as_words(indices: ir.Value) -> ir.Value:
    if b.is_vector_of(indices, _NUMBER_BITS):
        return indices
    return arith.extui(_integers(b.shape_of(indices)), indices)


def _integers(shape: list[int]) -> ir.VectorType:
    return ir.VectorType.get(shape, ir.IntegerType.get_signless(_NUMBER_BITS))


def has_numbers(table: ir.MemRefType) -> bool:
    """Whether entries are floats or integers of 32 bits."""
    return isinstance(table.element_type, ir.F32Type) or b.is_integer(table.element_type, _NUMBER_BITS)
