"""Stores of a register tile's bytes: four vectors of 32-bit integers -> pack to 64 bytes, table or clamp, store.

`vpackssdw` and `vpackuswb` saturate, first to 16 bits, then to 0..255: together they clamp to a byte, so a clamp to
0..255 before them is removed, and integers in that range do not change.  A truncation would wrap other integers
instead: so they must be proven to be bytes, by range analysis, by `overflow<nuw>` on the truncation, or by their use as
indices of a table of 256 entries.

Clamps within that range follow as unsigned bytes, on all 64 at once.  Both packs work within 128-bit lanes; one
`vpermd` restores the order, unless the tile is of bytes that were unpacked, which are in order.  A row of fewer than
four vectors shares the 64 bytes with the next rows: the work is the same, the stores are shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from operator import mul
from typing import ClassVar

import numpy as np

from qdialect.ir._mlir import arith, ir, vector
from qdialect.lowering.instructions.instruction_set import InstructionSet
from qdialect.lowering.instructions.lanes import PACK_BYTES, PACK_WORDS, VPERMD
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.flat_address import flat_address, is_unwritten, require_access
from qdialect.lowering.ir.views import may_alias, static_strides
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern
from qdialect.lowering.vector_to_x86.lookup_tables import is_table_read, look_up, table_of
from qdialect.lowering.vector_to_x86.unpacked_lanes import Tile
from qdialect.lowering.vector_to_x86.value_range import interval
from qdialect.passes.pattern import MatchFailure, require

_QUARTERS = 4
_LARGEST_BYTE = 255
_WORD = 32

Position = tuple[int, ...]


@dataclass(frozen=True)
class _Bytes:
    """The source of bytes: 32-bit integers, saturated; then a table, or a minimum and a maximum."""

    integers: ir.Value
    table: ir.Value | None = None
    low: ir.Value | int | None = None
    high: ir.Value | int | None = None
    """Of bytes read as unsigned: a scalar, or the bits of a constant."""

    def finish(self, packed: ir.Value, instructions: InstructionSet) -> ir.Value:
        """The bytes to store, from a register of packed bytes."""
        if self.table is not None:
            return table_of(self.table, instructions).look_up(packed)
        limited = packed if self.low is None else arith.maxui(packed, _spread(packed.type, self.low))
        return limited if self.high is None else arith.minui(limited, _spread(packed.type, self.high))


def _spread(type_: ir.Type, scalar: ir.Value | int) -> ir.Value:
    return b.splat(ir.VectorType(type_), scalar) if isinstance(scalar, int) else vector.broadcast(type_, scalar)


@dataclass(frozen=True)
class _Store:
    """A write of rows of vectors, or of tiles of unpacked lanes."""

    bytes: _Bytes
    buffer: ir.Value
    indices: list[ir.Value]
    is_unpacked: bool


class ByteStore(InstructionPattern[_Store]):
    """A write of [..., vectors, 16] bytes that are 32-bit integers narrowed, or looked up in a table."""

    roots = ("vector.transfer_write",)
    # Its match contains a gather: it is tried before the pattern of gathers.
    benefit: ClassVar[int] = 2

    def __init__(self, instructions: InstructionSet) -> None:
        self._instructions = instructions
        self._tile = Tile(instructions.vector_bytes)

    def check(self, op: ir.Operation) -> _Store | None:
        value, buffer = list(op.operands)[:2]
        cast = b.defining(value, "vector.shape_cast")
        is_unpacked = cast is not None and self._tile.is_in(buffer)
        value = cast.operands[0] if cast and is_unpacked else value
        if not b.is_vector_of(value, 8) or not isinstance(buffer.type, ir.MemRefType) or not _is_narrowed(value):
            return None
        require_access(op, buffer, "destination")
        _check_rows(buffer, b.shape_of(value), self._tile, is_unpacked)
        found = _bytes_behind(op, value)
        is_looked_up = found.table is None or self._instructions.looks_up_tables
        require(is_looked_up, "table must be looked up by instructions, which the target lacks")
        return _Store(found, buffer, list(op.operands)[2:], is_unpacked)

    def emit(self, op: ir.Operation, match: _Store) -> None:
        integers, is_unpacked, lanes = match.bytes.integers, match.is_unpacked, self._instructions.lanes
        positions = list(np.ndindex(*b.shape_of(integers)[:-1]))
        strides = static_strides(ir.MemRefType(match.buffer.type)) or ()
        inner = self._tile.rank if is_unpacked else 2
        address = flat_address(match.buffer, match.indices)
        for first in range(0, len(positions), _QUARTERS):
            group = positions[first : first + _QUARTERS]
            # In each 128-bit lane the bytes of four vectors in turn, any byte for one that is missing.
            vectors = [b.extract(integers, position) for position in group]
            quarters = [*vectors, *[vectors[-1]] * (_QUARTERS - len(vectors))]
            halves = (PACK_WORDS[lanes].emit(*quarters[start : start + 2]) for start in (0, 2))
            packed = PACK_BYTES[lanes].emit(*halves)
            packed = match.bytes.finish(packed if is_unpacked else _ordered(packed, lanes), self._instructions)
            if is_unpacked:
                self._tile.store(packed, match.buffer, address.further(_distance(group[0][:-1], strides[:-inner])))
                continue
            for row, start, part in _by_row(group, packed, lanes):
                address.further(_distance(row, strides[:-inner]) + start).store(part)


def _distance(row: Position, strides: Sequence[int]) -> int:
    """Elements between a tile's first row and `row`, the innermost of dimensions with `strides`."""
    return sum(map(mul, reversed(row), reversed(strides)))


def _by_row(group: list[Position], packed: ir.Value, lanes: int) -> Iterator[tuple[Position, int, ir.Value]]:
    """(row, its first byte, bytes) for each contiguous store."""
    start = 0
    for row, members in groupby(group, key=lambda position: position[:-1]):
        columns = [position[-1] for position in members]
        end = start + len(columns)
        part = packed if len(columns) == _QUARTERS else _slice(packed, start * lanes, end * lanes)
        yield row, columns[0] * lanes, part
        start = end


def _slice(packed: ir.Value, start: int, end: int) -> ir.Value:
    return b.shuffle(packed, packed, list(range(start, end)))


def _check_rows(buffer: ir.Value, tile: list[int], layout: Tile, is_unpacked: bool) -> None:
    """The bytes of a tile can be stored as whole vectors: [4, 16] out of wider rows lie apart."""
    _, lanes = layout.flat
    if is_unpacked:
        require(tile[-2:] == layout.flat, f"destination must get tiles of 4x{lanes}, but got {tile}")
        require(layout.is_injective(buffer), f"destination must have no byte twice, but got {buffer.type}")
        return
    is_whole = len(tile) >= 2 and tile[-1] == lanes and b.shape_of(buffer)[-2:] == tile[-2:]
    require(is_whole, f"destination must have rows of whole vectors of {lanes}, but got {tile} for {buffer.type}")
    is_dense = b.is_innermost_contiguous(buffer, 2)
    require(is_dense, f"destination must have rows that lie side by side, but got {buffer.type}")
    require(prod(tile[:-1]) > 1, "destination must get more than one vector")


def _is_narrowed(value: ir.Value) -> bool:
    """Whether bytes are 32-bit integers narrowed, or entries of a table at such indices."""
    gather = b.defining(value, "vector.gather")
    if gather is not None:
        cast = b.looked_through(gather.operands[2], "arith.index_cast", "arith.index_castui")
        return is_table_read(gather) and b.is_vector_of(cast, _WORD)
    narrowed = b.defining(_limit(_limit(value, "arith.minui")[0], "arith.maxui")[0], "arith.trunci")
    return narrowed is not None and b.is_vector_of(narrowed.operands[0], _WORD)


def _bytes_behind(op: ir.Operation, value: ir.Value) -> _Bytes:
    """The source of the bytes that `op` writes."""
    gather = b.defining(value, "vector.gather")
    if gather is not None:
        return _looked_up(op, gather)
    value, high = _limit(value, "arith.minui")
    value, low = _limit(value, "arith.maxui")
    narrowed = b.defining(value, "arith.trunci")
    assert narrowed is not None, "checked by _is_narrowed"
    integers = narrowed.operands[0]
    smallest, largest = interval(integers)
    # The truncation may state that its operand is an unsigned number of the narrow type.
    never_wraps = "overflowFlags" in narrowed.attributes and "nuw" in str(narrowed.attributes["overflowFlags"])
    are_bytes = never_wraps or 0 <= smallest <= largest <= _LARGEST_BYTE
    require(are_bytes, f"integers must be proven to be in 0..255, but are in {smallest}..{largest}")
    return _Bytes(_unclamped(integers), None, low, high)


def _looked_up(op: ir.Operation, gather: ir.Operation) -> _Bytes:
    found = look_up(gather)
    if found is None:
        raise MatchFailure("table must have 256 bytes")
    # The table is read at the stores, also after the first of them.
    is_kept = is_unwritten(gather, op) and not may_alias(found.table, op.operands[1])
    require(is_kept, "table must not be written before it is read")
    return _Bytes(_unclamped(found.indices), found.table)


def _limit(value: ir.Value, name: str) -> tuple[ir.Value, ir.Value | int | None]:
    """The operand of a clamp by a scalar, and the scalar; `value` itself if it is not a clamp."""
    owner = b.defining(value, name)
    scalar = _scalar(owner.operands[1]) if owner else None
    return (value, None) if owner is None or scalar is None else (owner.operands[0], scalar)


def _scalar(value: ir.Value) -> ir.Value | int | None:
    """The one number in every lane of `value`."""
    spread = b.defining(value, "vector.broadcast")
    if spread is not None and not isinstance(spread.operands[0].type, ir.VectorType):
        return spread.operands[0]
    return b.splat_value(value)


def _unclamped(integers: ir.Value) -> ir.Value:
    """Integers before a clamp to 0..255, which packing repeats."""
    upper = b.defining(integers, "arith.minsi")
    lower = b.defining(upper.operands[0], "arith.maxsi") if upper else None
    if upper is None or lower is None or b.splat_value(upper.operands[1]) != _LARGEST_BYTE:
        return integers
    return lower.operands[0] if b.splat_value(lower.operands[1]) == 0 else integers


def _ordered(packed: ir.Value, lanes: int) -> ir.Value:
    """The bytes of one vector after the other."""
    if lanes not in VPERMD:
        # One lane of 128 bits is in order.
        return packed
    order = np.arange(lanes, dtype=np.int32).reshape(-1, _QUARTERS).T.ravel()
    ordered = VPERMD[lanes].emit(b.bitcast(b.vector_type(lanes, 32), packed), b.constant(order))
    return b.bitcast(packed.type, ordered)
