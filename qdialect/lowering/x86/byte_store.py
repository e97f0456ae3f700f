"""Storing a register tile's codes: four vectors of 32-bit codes -> 64 bytes, table or limits, stores.

`vpackssdw` and `vpackuswb` saturate, first to 16 bits, then to 0..255: together they clamp to a byte, so that a clamp
to 0..255 before them is left out, and codes already there lose nothing.  Limits within that range, which follow as
unsigned bytes, are set on all 64 at once.  Both packs work within 128-bit lanes; one `vpermd` puts the quarters back in
order, unless the tile is of bytes that were unpacked: then they are.  A row of fewer than four vectors shares the 64
bytes with the next rows: the work is the same, only the stores are shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
_LARGEST_BYTE = 255

Position = tuple[int, ...]


@dataclass(frozen=True)
class _Bytes:
    """Where bytes come from: 32-bit codes, saturated; then a table, or a limit above which and one below which."""

    codes: ir.Value
    table: ir.Value | None = None
    least: ir.Value | None = None
    most: ir.Value | None = None

    def finish(self, packed: ir.Value) -> ir.Value:
        """What is stored of 64 packed codes."""
        if self.table is not None:
            return Table(self.table).look_up(packed)
        limited = packed if self.least is None else arith.maxui(packed, vector.broadcast(packed.type, self.least))
        return limited if self.most is None else arith.minui(limited, vector.broadcast(packed.type, self.most))


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
    bytes_ = _bytes_behind(value)
    if bytes_ is None or len(positions) == 1:
        return True
    with rewriter.ip, op.location:
        flat = buffer if unpacked else b.collapse_inner(buffer, 2)
        for first in range(0, len(positions), _QUARTERS):
            group = positions[first : first + _QUARTERS]
            packed = _pack([b.extract(bytes_.codes, position) for position in group])
            packed = bytes_.finish(packed if unpacked else _ordered(packed))
            if unpacked:
                _store_tile(packed, flat, indices, group[0][:-1])
                continue
            for row, start, part in _by_row(group, packed):
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


def _bytes_behind(value: ir.Value) -> _Bytes | None:
    """How the bytes that are written come about, unless in another way."""
    gather = b.defining(value, "vector.gather")
    if gather and is_table(gather.operands[0]):
        return _narrowed(index_source(gather), table=gather.operands[0])
    value, most = _limit(value, "arith.minui")
    value, least = _limit(value, "arith.maxui")
    narrowed = b.defining(value, "arith.trunci")
    return _narrowed(narrowed.operands[0] if narrowed else None, least=least, most=most)


def _limit(value: ir.Value, name: str) -> tuple[ir.Value, ir.Value | None]:
    """The value that an op limits by a scalar, and the scalar; the value itself where it does not."""
    owner = b.defining(value, name)
    spread = b.defining(owner.operands[1], "vector.broadcast") if owner else None
    if owner is None or spread is None or isinstance(spread.operands[0].type, ir.VectorType):
        return value, None
    return owner.operands[0], spread.operands[0]


def _narrowed(
    source: ir.Value | None,
    table: ir.Value | None = None,
    least: ir.Value | None = None,
    most: ir.Value | None = None,
) -> _Bytes | None:
    if source is None or str(ir.VectorType(source.type).element_type) != "i32":
        return None
    return _Bytes(_unclamped(source), table, least, most)


def _unclamped(codes: ir.Value) -> ir.Value:
    """Codes before a clamp to 0..255, which packing repeats."""
    upper = b.defining(codes, "arith.minsi")
    lower = b.defining(upper.operands[0], "arith.maxsi") if upper else None
    if upper is None or lower is None or b.splat_value(upper.operands[1]) != _LARGEST_BYTE:
        return codes
    return lower.operands[0] if b.splat_value(lower.operands[1]) == 0 else codes


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
