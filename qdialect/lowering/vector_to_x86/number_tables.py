"""`vector.gather` from tables of 32-bit numbers -> permutes of registers; and the conditions of all table patterns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qdialect.arithmetic.float32.machine import ENTRIES
from qdialect.ir._mlir import arith, ir, vector
from qdialect.lowering.instructions.lanes import VPERMD, VPERMI2B, VPERMI2D
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


# `vector.gather` from as many elements as a few registers hold -> permutes of them.
#
# A gather loads lane by lane.  Of 256 numbers of 32 bits one `vpermi2d` looks up 32 in two registers by the low five
# bits of each index; eight of them look up all, and seven selects on the three bits above choose among them.  Where
# registers are scarce the sixteen parts of the table are reloaded, which is still at most one load per lane.

BYTE_ENTRIES = 256
_BITS, _BYTE = 32, 8
_LANES, _REGISTER = 16, 64
"""Of the widest register: numbers, and bytes."""


class RegisterTable(InstructionPattern[Lookup]):
    """A gather in every lane from up to 32 numbers of 32 bits, or from two registers of bytes where `vpermi2b` is.

    Registers of 16 numbers may be 16, too.
    """

    name: ClassVar[str] = "register-table"
    roots = ("vector.gather",)

    def __init__(self, lanes: int, *, has_bytes: bool) -> None:
        """`lanes` are the 32-bit lanes of the widest vector that has a permute."""
        self._lanes, self._has_bytes = lanes, has_bytes

    def check(self, op: ir.Operation) -> Lookup | MatchFailure | None:
        type_ = op.operands[0].type
        if not isinstance(type_, ir.MemRefType) or type_.rank != 1:
            return None
        lanes, entries = self._lanes_of(type_), type_.shape[0]
        is_long = entries == BYTE_ENTRIES and lanes == _LANES
        if lanes == 0 or not (0 < entries <= 2 * max(lanes, _LANES) or is_long):
            return None
        is_wrapping = has_numbers(type_) and entries <= ENTRIES
        found = lookup_of(op, _unwrapped if is_wrapping else whole_indices, "a vector of 8 or 32-bit integers")
        if isinstance(found, MatchFailure) or not b.lanes_of(found.indices) % lanes:
            return found
        if is_long or not _is_short(found.indices, lanes):
            wanted = f"rows of a multiple of {lanes} lanes"
            wanted = wanted if is_long else f"at most {lanes} lanes or rows of a multiple of them"
            return MatchFailure(f"vectors must have {wanted}, but got {b.shape_of(found.indices)}")
        return found

    def _lanes_of(self, table: ir.MemRefType) -> int:
        """Elements of a register; 0 where no permute takes them."""
        if has_numbers(table):
            return self._lanes
        return _REGISTER if self._has_bytes and b.is_integer(table.element_type, _BYTE) else 0

    def emit(self, op: ir.Operation, match: Lookup) -> ir.Value:
        type_, table = ir.VectorType(op.results[0].type), ir.MemRefType(match.table.type)
        lanes, entries = self._lanes_of(table), table.shape[0]
        known = _as_words(match.indices) if has_numbers(table) else match.indices
        parts = [_part(match.table, start, min(lanes, entries - start), lanes) for start in range(0, entries, lanes)]
        own, integers = (ir.VectorType.get([lanes], one) for one in (table.element_type, _element(parts[0])))
        if _is_short(known, lanes):
            count = math.prod(type_.shape)
            row = vector.shape_cast(ir.VectorType.get([count], _element(known)), known)
            return vector.shape_cast(type_, b.widened(b.bitcast(own, _picked(parts, b.widened(row, lanes))), count))
        *outer, last = type_.shape
        blocks = [*outer, last // lanes, lanes]
        indices = vector.shape_cast(ir.VectorType.get(blocks, integers.element_type), known)
        # Any register will do to insert into: every position is written.
        result = b.emit("ub.poison", ir.VectorType.get(blocks, table.element_type))
        for position in np.ndindex(*blocks[:-1]):
            result = b.insert(b.bitcast(own, _picked(parts, b.extract(indices, position))), result, position)
        return vector.shape_cast(type_, result)


def _is_short(indices: ir.Value, lanes: int) -> bool:
    """Whether one register has all."""
    return math.prod(b.shape_of(indices)) <= lanes


def _element(value: ir.Value) -> ir.Type:
    return ir.VectorType(value.type).element_type


def _part(table: ir.Value, start: int, count: int, lanes: int) -> ir.Value:
    """A register of a table, as integers; lanes beyond its entries are any."""
    whole = b.widened(b.load(count, table, [b.index(start)]), lanes)
    return b.bitcast(b.vector_type(lanes, b.element_bits(_element(whole))), whole)


def _picked(parts: list[ir.Value], indices: ir.Value) -> ir.Value:
    """Entries of registers by their indices."""
    lanes, type_ = b.lanes_of(indices), ir.VectorType(indices.type)
    if lanes == _REGISTER:
        return VPERMI2B.emit(parts[0], indices, parts[-1])
    if len(parts) == 1 or lanes != _LANES:
        found, bit = [VPERMD[lanes].emit(part, indices) for part in parts], lanes
    else:
        found, bit = (
            [VPERMI2D.emit(low, indices, high) for low, high in zip(parts[::2], parts[1::2], strict=True)],
            2 * lanes,
        )
    # The bits above those that a permute reads select the register.
    while len(found) > 1:
        is_high = arith.cmpi(arith.CmpIPredicate.ne, arith.andi(indices, b.splat(type_, bit)), b.splat(type_, 0))
        found = [arith.select(is_high, high, low) for low, high in zip(found[::2], found[1::2], strict=True)]
        bit *= 2
    return found[0]


def _unwrapped(indices: ir.Value) -> ir.Value | None:
    """Integers whose low four bits a permute reads: what the `indices` are modulo 16."""
    wrapped = b.defining(indices, "arith.andi")
    is_wrapped = wrapped is not None and b.splat_value(wrapped.operands[1]) == ENTRIES - 1
    return whole_indices(wrapped.operands[0] if wrapped is not None and is_wrapped else indices)


def whole_indices(indices: ir.Value) -> ir.Value | None:
    """`indices` where they are integers of 8 or 32 bits."""
    return indices if any(b.is_vector_of(indices, bits) for bits in (_BYTE, _BITS)) else None


def _as_words(indices: ir.Value) -> ir.Value:
    if b.is_vector_of(indices, _BITS):
        return indices
    return arith.extui(ir.VectorType.get(b.shape_of(indices), ir.IntegerType.get_signless(_BITS)), indices)


def has_numbers(table: ir.MemRefType) -> bool:
    """Whether entries are floats or integers of 32 bits."""
    return isinstance(table.element_type, ir.F32Type) or b.is_integer(table.element_type, _BITS)
