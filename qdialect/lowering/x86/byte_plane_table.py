"""`vector.gather` of 64 numbers from a table of 256 numbers of 32 bits -> byte permutes, one table for each byte.

Byte p of every entry makes plane p, 256 bytes in four registers, where two `vpermi2b` and a select on the top bit of
each index look up 64 bytes.  Unpacking puts the bytes of the four planes together: bytes of planes 0 and 1, and of 2
and 3, become words, and those numbers.  That is nine permutes, four selects and eight unpacks for 64 numbers, where
`vpermi2d` takes 32 permutes and 28 selects (`qdialect.lowering.x86.number_table`).

Unpacking within 128-bit lanes takes byte 16 l + 4 v + i to vector v, number 4 l + i, so that indices are permuted
before: byte 16 l + 4 v + i is the index of number 16 v + 4 l + i.

Planes are made before the outermost loop that does not write the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from qdialect._mlir import arith, ir, vector
from qdialect.lowering.ir.loops import LOOP
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.instructions.permutes import VPERMI2B
from qdialect.lowering.x86.loop_writes import keeps
from qdialect.lowering.x86.number_table import ENTRIES, has_numbers, whole_indices
from qdialect.lowering.x86.table_gather import Lookup, lookup_of, table_type
from qdialect.passes.pattern import MatchFailure

_BYTES, _WORD, _NUMBER = 64, 16, 32
_PLANES, _PART = 4, 16
_QUARTERS = ENTRIES // _BYTES
_CASTS = ("arith.extui", "arith.extsi", "vector.shape_cast", "vector.transpose")


@dataclass(frozen=True)
class _Match:
    lookup: Lookup
    place: ir.Operation
    """Before which the planes are made."""


class BytePlaneTable(InstructionPattern[_Match]):
    """A gather from 256 numbers of 32 bits, from the first one on and in 64 n lanes.

    An index beyond the table is undefined behaviour, so that the low byte of an index is all of it.
    """

    name: ClassVar[str] = "byte-plane-table"
    root: ClassVar[str] = "vector.gather"
    benefit: ClassVar[int] = 2

    def check(self, op: ir.Operation) -> _Match | MatchFailure | None:
        type_ = table_type(op, ENTRIES)
        if type_ is None or not has_numbers(type_):
            return None
        found = lookup_of(op, whole_indices, "a vector of 8 or 32-bit integers")
        if isinstance(found, MatchFailure):
            return found
        shape = [extent for extent in b.shape_of(found.indices) if extent > 1]
        if not shape or shape[-1] % _PART or prod(shape) % _BYTES:
            wanted = f"a multiple of {_BYTES} entries in rows of a multiple of {_PART}"
            return MatchFailure(f"must look up {wanted}, but got {'x'.join(map(str, shape))}")
        return _Match(found, _outermost(op, found.table))

    def rewrite(self, op: ir.Operation, match: _Match) -> ir.Value:
        type_ = ir.VectorType(op.results[0].type)
        with ir.InsertionPoint(match.place):
            planes = _planes(match.lookup.table)
        count = prod(b.shape_of(match.lookup.indices)) // _BYTES
        indices = vector.shape_cast(_integers([count, _BYTES], 8), _low_bytes(match.lookup.indices))
        # Any register will do to insert into: every position is written.
        result = b.splat(_integers([count, _PLANES, _PART], _NUMBER), 0)
        for block in range(count):
            for part, numbers in enumerate(_look_up(planes, b.extract(indices, [block]))):
                result = b.insert(numbers, result, [block, part])
        found = vector.shape_cast(_integers(list(type_.shape), _NUMBER), result)
        return found if found.type == type_ else vector.bitcast(type_, found)


def _outermost(op: ir.Operation, table: ir.Value) -> ir.Operation:
    """The outermost of the loops around `op`, one in the other, that leave `table` as it is; else `op` itself."""
    place, parent = op, op.parent
    while parent is not None and parent.name == LOOP and keeps(parent.operation, table):
        place = parent.operation
        parent = place.parent
    return place


def _planes(table: ir.Value) -> list[list[ir.Value]]:
    """For each byte of an entry four vectors, a quarter of the entries each."""
    quarters = [_quarter(table, _BYTES * quarter) for quarter in range(_QUARTERS)]
    return [list(plane) for plane in zip(*quarters, strict=True)]


def _quarter(table: ir.Value, start: int) -> list[ir.Value]:
    """The bytes of 64 entries, plane by plane: 32 entries of two planes at a time, then 64 of one."""
    entries = [_part(table, start + _PART * part) for part in range(_PLANES)]
    pairs: list[list[ir.Value]] = []
    for plane in (0, 2):
        order = [_PLANES * entry + byte for byte in (plane, plane + 1) for entry in range(2 * _PART)]
        pairs.append([b.shuffle(entries[i], entries[i + 1], order) for i in (0, 2)])
    half = list(range(_BYTES // 2))
    low, high = ([*(lane + start for lane in half), *(lane + start + _BYTES for lane in half)] for start in (0, 32))
    return [b.shuffle(first, second, order) for first, second in pairs for order in (low, high)]


def _part(table: ir.Value, start: int) -> ir.Value:
    return vector.bitcast(b.vector_type(_BYTES, 8), b.load(_PART, table, [b.index(start)]))


def _look_up(planes: list[list[ir.Value]], indices: ir.Value) -> list[ir.Value]:
    """64 entries by as many bytes, 16 in each vector."""
    words = vector.bitcast(b.vector_type(_PART, _NUMBER), indices)
    transposed = np.arange(_PART).reshape(_PLANES, _PLANES).T.ravel().tolist()
    permuted = vector.bitcast(b.vector_type(_BYTES, 8), b.shuffle(words, words, transposed))
    is_second_half = arith.cmpi(arith.CmpIPredicate.slt, permuted, b.splat(b.vector_type(_BYTES, 8), 0))
    found = [_of_plane(plane, permuted, is_second_half) for plane in planes]
    low, high = (_unpacked(found[i], found[i + 1], _WORD) for i in (0, 2))
    return [part for pair in zip(low, high, strict=True) for part in _unpacked(*pair, _NUMBER)]


def _of_plane(quarters: list[ir.Value], indices: ir.Value, is_second_half: ir.Value) -> ir.Value:
    first, second, third, fourth = quarters
    return arith.select(is_second_half, VPERMI2B.emit(third, indices, fourth), VPERMI2B.emit(first, indices, second))


def _unpacked(low: ir.Value, high: ir.Value, bits: int) -> list[ir.Value]:
    """Numbers of `bits`, each with its low half from `low`: of the first half of every 128 bits, and of the second."""
    count, part = b.lanes_of(low), 2 * 128 // bits
    halves = np.arange(count).reshape(-1, 2, part // 2)
    orders = (np.stack([halves[:, i], halves[:, i] + count], axis=-1).ravel().tolist() for i in range(2))
    return [vector.bitcast(b.vector_type(count // 2, bits), b.shuffle(low, high, order)) for order in orders]


def _low_bytes(integers: ir.Value) -> ir.Value:
    """The low bytes of a vector's integers, side by side.

    Those of a difference are the difference of theirs, so that nothing is widened that a table of bytes looks up.
    """
    owner = integers.owner
    if isinstance(owner, ir.Block) or b.is_vector_of(integers, 8):
        return _truncated(integers)
    if owner.name in _CASTS and _keeps_order(owner.operation):
        return _low_bytes(owner.operands[0])
    if owner.name == "arith.subi":
        return arith.subi(*(_low_bytes(operand) for operand in owner.operands))
    if owner.name == "vector.broadcast":
        return _spread(owner.operands[0], b.shape_of(integers))
    return _truncated(integers)


def _keeps_order(cast: ir.Operation) -> bool:
    """Whether elements come in the same order, row by row: a transposition may move extents of 1 alone."""
    if cast.name != "vector.transpose":
        return True
    extents = b.shape_of(cast.operands[0])
    moved = [position for position in b.order_of(cast) if extents[position] > 1]
    return moved == sorted(moved)


def _truncated(integers: ir.Value) -> ir.Value:
    shape = b.shape_of(integers)
    bytes_ = integers if b.is_vector_of(integers, 8) else arith.trunci(_integers(shape, 8), integers)
    return vector.shape_cast(b.vector_type(prod(shape), 8), bytes_)


def _spread(source: ir.Value, shape: list[int]) -> ir.Value:
    """The low bytes of what is broadcast to `shape`."""
    if not isinstance(source.type, ir.VectorType):
        number = arith.trunci(ir.IntegerType.get_signless(8), source)
        return vector.broadcast(b.vector_type(prod(shape), 8), number)
    bytes_ = vector.shape_cast(_integers(b.shape_of(source), 8), _low_bytes(source))
    return _truncated(vector.broadcast(_integers(shape, 8), bytes_))


def _integers(shape: list[int], bits: int) -> ir.VectorType:
    return ir.VectorType.get(shape, ir.IntegerType.get_signless(bits))
