"""Storing a register tile's codes: four vectors of 32-bit codes -> 64 bytes, table, stores.

Codes are in 0..255 when they get here, so `vpackssdw` and `vpackuswb` lose nothing.  Both pack within 128-bit lanes;
one `vpermd` puts the quarters back in order, unless the tile is of bytes that were unpacked: then they are.  A row of
fewer than four vectors shares the 64 bytes with the next rows: the work is the same, only the stores are shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from qdialect._mlir import arith, ir, rewrite, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86 import unpacked_lanes
from qdialect.lowering.x86.byte_table import Table, index_source, is_table, shuffle

PACK_WORDS = "llvm.x86.avx512.packssdw.512"
PACK_BYTES = "llvm.x86.avx512.packuswb.512"
PERMUTE_WORDS = "llvm.x86.avx512.permvar.si.512"
_ORDER = np.array([0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15], dtype=np.int32)
_LANES = 16
_QUARTERS = 4

Position = tuple[int, ...]


def store_packed(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Rewrite one write of [..., vectors, 16] codes; truthy where it is another write, or of a single vector."""
    value, buffer, *indices = op.operands
    cast = b.defining(value, "vector.shape_cast")
    unpacked = cast is not None and unpacked_lanes.holds_tiles(buffer)
    value = cast.operands[0] if cast and unpacked else value
    shape = b.shape_of(value)
    if not (shape[-2:] == [_QUARTERS, _LANES] if unpacked else _holds_rows(buffer, shape)):
        return True
    positions = list(np.ndindex(*shape[:-1]))
    codes, table_buffer = _codes_of(value)
    if codes is None or len(positions) == 1:
        return True
    with rewriter.ip, op.location:
        table = Table(table_buffer) if table_buffer is not None else None
        flat = buffer if unpacked else b.collapse_inner(buffer, 2)
        for first in range(0, len(positions), _QUARTERS):
            group = positions[first : first + _QUARTERS]
            packed = _pack([b.extract(codes, position) for position in group])
            packed = packed if unpacked else _ordered(packed)
            found = table.look_up(packed) if table else packed
            if unpacked:
                _store_tile(found, flat, indices, group[0][:-1])
                continue
            for row, start, part in _by_row(group, found):
                _store(part, flat, indices[:-2], row, start)
    rewriter.erase_op(op)
    return None


def _store_tile(codes: ir.Value, buffer: ir.Value, indices: Sequence[ir.Value], row: Position) -> None:
    """Store the tile at `row` of the tiles at `indices`."""
    rank = unpacked_lanes.RANK
    outer = [0] * (len(indices) - rank - len(row))
    unpacked_lanes.store_tile(codes, buffer, b.shifted(indices, [*outer, *row, *[0] * rank]))


def _store(part: ir.Value, buffer: ir.Value, indices: Sequence[ir.Value], row: Position, start: int) -> None:
    """Store bytes of the row at `row` of the tile at `indices`, from byte `start` of it on."""
    outer = [0] * (len(indices) - len(row))
    index = ir.IndexType.get()
    inner = [arith.constant(index, 0)] * (ir.MemRefType(buffer.type).rank - len(indices) - 1)
    vector.store(part, buffer, [*b.shifted(indices, [*outer, *row]), *inner, arith.constant(index, start)])


def _by_row(group: list[Position], codes: ir.Value) -> Iterator[tuple[Position, int, ir.Value]]:
    """(row, first byte of it, bytes) of what lies side by side in memory."""
    start = 0
    for row, members in groupby(group, key=lambda position: position[:-1]):
        columns = [position[-1] for position in members]
        end = start + len(columns)
        part = codes if len(columns) == _QUARTERS else _slice(codes, start * _LANES, end * _LANES)
        yield row, columns[0] * _LANES, part
        start = end


def _slice(codes: ir.Value, start: int, end: int) -> ir.Value:
    return shuffle(codes, codes, list(range(start, end)))


def _holds_rows(buffer: ir.Value, tile: list[int]) -> bool:
    """Whether a row of the tile lies side by side: [4, 16] out of wider rows does not."""
    if not isinstance(buffer.type, ir.MemRefType) or tile[-1] != _LANES:
        return False
    return b.shape_of(buffer)[-2:] == tile[-2:] and b.is_innermost_contiguous(buffer, 2)


def _codes_of(value: ir.Value) -> tuple[ir.Value | None, ir.Value | None]:
    """The 32-bit codes behind the bytes that are written, and the table between them."""
    gather = b.defining(value, "vector.gather")
    if gather and is_table(gather.operands[0]):
        source, table = index_source(gather), gather.operands[0]
    else:
        narrowed = b.defining(value, "arith.trunci")
        source, table = (narrowed.operands[0] if narrowed else None), None
    if source is None or str(ir.VectorType(source.type).element_type) != "i32":
        return None, None
    return source, table


def _pack(vectors: list[ir.Value]) -> ir.Value:
    """64 bytes; in each 128-bit lane those of the four vectors in turn, any byte for one that is missing."""
    quarters = [*vectors, *[vectors[-1]] * (_QUARTERS - len(vectors))]
    words = b.vector_type(32, 16)
    low = b.intrinsic(PACK_WORDS, words, quarters[0], quarters[1])
    high = b.intrinsic(PACK_WORDS, words, quarters[2], quarters[3])
    return b.intrinsic(PACK_BYTES, b.vector_type(64, 8), low, high)


def _ordered(packed: ir.Value) -> ir.Value:
    """The bytes of one vector after the other."""
    doubles = b.vector_type(16, 32)
    ordered = b.intrinsic(PERMUTE_WORDS, doubles, vector.bitcast(doubles, packed), b.constant(_ORDER))
    return vector.bitcast(b.vector_type(64, 8), ordered)
