"""Storing a register tile's codes: four vectors of 32-bit codes -> 64 bytes, table, one store.

Codes are in 0..255 when they get here, so `vpackssdw` and `vpackuswb` lose nothing.  Both pack within 128-bit lanes;
one `vpermd` puts the quarters back in order, unless the tile is of bytes that were unpacked: then they are.
"""

from __future__ import annotations

import numpy as np

from qdialect._mlir import arith, ir, rewrite, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.byte_table import Table, index_source, is_table

PACK_WORDS = "llvm.x86.avx512.packssdw.512"
PACK_BYTES = "llvm.x86.avx512.packuswb.512"
PERMUTE_WORDS = "llvm.x86.avx512.permvar.si.512"
_ORDER = np.array([0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15], dtype=np.int32)
_TILE = [4, 16]


def store_packed(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Rewrite one write of [..., 4, 16] codes; truthy where it is another write."""
    value, buffer, *indices = op.operands
    cast = b.defining(value, "vector.shape_cast")
    unpacked = cast is not None and b.holds_unpacked(buffer)
    value = cast.operands[0] if cast and unpacked else value
    shape = b.shape_of(value)
    if shape[-2:] != _TILE or not (unpacked or _holds_tiles(buffer)):
        return True
    codes, table_buffer = _codes_of(value)
    if codes is None:
        return True
    inner = 3 if unpacked else 2
    with rewriter.ip, op.location:
        flat = buffer if unpacked else b.collapse_inner(buffer, inner)
        table = Table(table_buffer) if table_buffer is not None else None
        zero = arith.constant(ir.IndexType.get(), 0)
        zeros = [zero] * (ir.MemRefType(flat.type).rank - len(indices) + inner)
        outer = [0] * (len(indices) - inner - len(shape) + 2)
        for position in np.ndindex(*shape[:-2]):
            packed = _pack(codes, position)
            packed = packed if unpacked else _ordered(packed)
            found = table.look_up(packed) if table else packed
            vector.store(found, flat, [*b.shifted(indices[:-inner], [*outer, *position]), *zeros])
    rewriter.erase_op(op)
    return None


def _holds_tiles(buffer: ir.Value) -> bool:
    """Whether a tile is 64 bytes in a row: [4, 16] out of wider rows is not."""
    is_memory = isinstance(buffer.type, ir.MemRefType)
    return is_memory and b.shape_of(buffer)[-2:] == _TILE and b.is_innermost_contiguous(buffer, 2)


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


def _pack(codes: ir.Value, position: tuple[int, ...]) -> ir.Value:
    """64 bytes; in each 128-bit lane those of the four vectors in turn."""
    quarters = [b.extract(codes, (*position, i)) for i in range(4)]
    words = b.vector_type(32, 16)
    low = b.intrinsic(PACK_WORDS, words, quarters[0], quarters[1])
    high = b.intrinsic(PACK_WORDS, words, quarters[2], quarters[3])
    return b.intrinsic(PACK_BYTES, b.vector_type(64, 8), low, high)


def _ordered(packed: ir.Value) -> ir.Value:
    """The bytes of one vector after the other."""
    doubles = b.vector_type(16, 32)
    ordered = b.intrinsic(PERMUTE_WORDS, doubles, vector.bitcast(doubles, packed), b.constant(_ORDER))
    return vector.bitcast(b.vector_type(64, 8), ordered)
