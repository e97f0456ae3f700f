"""Tables of 256 bytes, looked up by byte permutes and byte shuffles."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import ClassVar, Protocol

import numpy as np

from qdialect.ir._mlir import arith, ir
from qdialect.lowering.instructions.instruction_set import InstructionSet
from qdialect.lowering.instructions.lanes import VPERMI2B, VPSHUFB
from qdialect.lowering.ir import building as b
from qdialect.lowering.vector_to_x86 import number_tables
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure

# `vector.gather` from a 256-byte table -> `vpermi2b`, or `vpshufb`.
#
# With byte permutes the table stands in four registers.  One `vpermi2b` looks 64 bytes up in 128 entries by the low 7
# bits of each index; two of them and a select on the top bit make 256 entries.
#
# A byte shuffle looks up 16 entries, and gives zero where the index has its top bit set.  With T_i the entries from 16
# i on, as for i in 0..7 and an index x < 128,
#
#   T_(x / 16)[x mod 16] = xor of (T_i xor T_(i-1))[x mod 16] over i <= x / 16,      T_(-1) = 0,
#
# and x - 16 i, saturating, is negative just where i > x / 16, or where x is 128 or more, read as signed.  So eight
# shuffles by x, x - 16, ... look up one half of the table, and eight more by x xor 128 the other half.

_ENTRIES = 256
_BYTE = 8
_PART = 16


class Table(Protocol):
    """A 256-byte table in registers."""

    width: int
    """Bytes that are looked up at once."""

    def look_up(self, indices: ir.Value) -> ir.Value:
        """Entries by `width` unsigned bytes."""
        ...


class _PermutedTable:
    """A table for `vpermi2b`."""

    width = 64

    def __init__(self, buffer: ir.Value) -> None:
        self._quarters = [b.load(self.width, buffer, [b.index(self.width * q)]) for q in range(4)]
        self._zero = b.splat(b.vector_type(self.width, 8), 0)

    def look_up(self, indices: ir.Value) -> ir.Value:
        """64 entries by 64 unsigned bytes."""
        first, second, third, fourth = self._quarters
        low = VPERMI2B.emit(first, indices, second)
        high = VPERMI2B.emit(third, indices, fourth)
        top_bit = arith.cmpi(arith.CmpIPredicate.slt, indices, self._zero)
        return arith.select(top_bit, high, low)


class _ShuffledTable:
    """A table for `vpshufb`: the xor of each 16 entries with the 16 before, for every 16 bytes of a vector."""

    def __init__(self, buffer: ir.Value, lanes: int) -> None:
        self.width = 4 * lanes
        self._shuffle = VPSHUFB[lanes]
        self._halves = [self._differences(buffer, start) for start in (0, _ENTRIES // 2)]

    def look_up(self, indices: ir.Value) -> ir.Value:
        """Entries by a whole vector of unsigned bytes."""
        type_ = ir.VectorType(indices.type)
        step = b.splat(type_, _PART)
        found: ir.Value | None = None
        for differences, flip in zip(self._halves, (0, -128), strict=True):
            index = arith.xori(indices, b.splat(type_, flip)) if flip else indices
            for position, difference in enumerate(differences):
                index = b.intrinsic("llvm.ssub.sat", type_, index, step) if position else index
                part = self._shuffle.emit(difference, index)
                found = part if found is None else arith.xori(found, part)
        assert found is not None, "a table has entries"
        return found

    def _differences(self, buffer: ir.Value, start: int) -> list[ir.Value]:
        parts = [b.load(_PART, buffer, [b.index(position)]) for position in range(start, start + _ENTRIES // 2, _PART)]
        own = [parts[0], *(arith.xori(*pair) for pair in pairwise(parts))]
        order = [position % _PART for position in range(self.width)]
        return [part if self.width == _PART else b.shuffle(part, part, order) for part in own]


def table_of(buffer: ir.Value, instructions: InstructionSet) -> Table:
    """The table in `buffer`, loaded into registers; the target must have byte permutes or shuffles."""
    return _PermutedTable(buffer) if instructions.has_byte_permutes else _ShuffledTable(buffer, instructions.lanes)


class ByteTable(InstructionPattern[number_tables.Lookup]):
    """A gather from a table of 256 bytes, from its first entry on and in every lane."""

    name: ClassVar[str] = "byte-table"
    roots = ("vector.gather",)

    def __init__(self, instructions: InstructionSet) -> None:
        self._instructions = instructions

    def check(self, op: ir.Operation) -> number_tables.Lookup | MatchFailure | None:
        return look_up(op)

    def emit(self, op: ir.Operation, match: number_tables.Lookup) -> ir.Value:
        type_ = ir.VectorType(op.results[0].type)
        shape = list(type_.shape)
        table, indices = table_of(match.table, self._instructions), _as_bytes(match.indices)
        # Any register will do to insert into: every position is written.
        result = b.splat(type_, 0)
        for position in np.ndindex(*shape[:-1]):
            row = b.extract(indices, position) if position else indices
            found = _look_up_any(table, row, shape[-1])
            result = b.insert(found, result, position) if position else found
        return result


def is_table_read(op: ir.Operation) -> bool:
    """Whether `op` gathers from a table of 256 bytes."""
    type_ = number_tables.table_type(op, _ENTRIES) if op.name == "vector.gather" else None
    return type_ is not None and b.is_integer(type_.element_type, _BYTE)


def look_up(gather: ir.Operation) -> number_tables.Lookup | MatchFailure | None:
    """The lookup of `gather`; None if it does not read a table of 256 bytes.

    An index beyond the table is undefined behaviour, so that the low byte of an index is all of it.
    """
    if not is_table_read(gather):
        return None
    return number_tables.lookup_of(gather, _whole_bytes, "a vector of integers of at least 8 bits")


def _whole_bytes(indices: ir.Value) -> ir.Value | None:
    return indices if b.integer_bits(indices.type) >= _BYTE and ir.VectorType(indices.type).rank else None


def _as_bytes(source: ir.Value) -> ir.Value:
    extended = b.defining(source, "arith.extui")
    if extended and b.is_vector_of(extended.operands[0], _BYTE):
        return extended.operands[0]
    if b.is_vector_of(source, _BYTE):
        return source
    return arith.trunci(ir.VectorType.get(b.shape_of(source), ir.IntegerType.get_signless(_BYTE)), source)


def _look_up_any(table: Table, indices: ir.Value, lanes: int) -> ir.Value:
    """Look up a 1-d vector of any length, a register at a time, the last one filled up."""
    width = table.width
    if lanes == width:
        return table.look_up(indices)
    total = math.ceil(lanes / width) * width
    parts = [
        table.look_up(b.shuffle(indices, indices, [min(start + i, lanes - 1) for i in range(width)]))
        for start in range(0, total, width)
    ]
    joined = parts[0]
    for count, part in enumerate(parts[1:], start=1):
        joined = insert_slice(part, b.splat(b.vector_type((count + 1) * width, 8), 0), joined, count * width)
    return b.shuffle(joined, joined, list(range(lanes)))


def insert_slice(part: ir.Value, fresh: ir.Value, head: ir.Value, offset: int) -> ir.Value:
    """`head` followed by `part`, in the type of `fresh`."""
    return _strided(part, _strided(head, fresh, 0), offset)


def _strided(value: ir.Value, destination: ir.Value, offset: int) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    attributes = {
        "offsets": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, offset)]),
        "strides": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, 1)]),
    }
    operands = [value, destination]
    name = "vector.insert_strided_slice"
    return ir.Operation.create(name, results=[destination.type], operands=operands, attributes=attributes).result
