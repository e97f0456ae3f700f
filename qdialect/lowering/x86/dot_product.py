"""`vector.contract` of u8 x s8 -> `vpdpbusd`.

The instruction adds, in each 32-bit lane, four products of an unsigned by a signed byte to the accumulator, exactly.  A
register tile of R rows and V vectors is R * V of them: the weights' four taps per lane as they lie in memory, the row's
four bytes broadcast to all lanes.

The rows of a tile are many short streams: they are fetched into the first-level cache while the tile before is at work,
a little at each step.  Weights are one stream, which the processor fetches ahead by itself, though not far enough for
what comes from memory; a single row asks for it as fast as it can come, and fetching it ahead would only be more work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import arith, ir, rewrite, vector
from qdialect.lowering.x86 import building as b

INTRINSICS = {
    16: "llvm.x86.avx512.vpdpbusd.512",
    8: "llvm.x86.avx512.vpdpbusd.256",
    4: "llvm.x86.avx512.vpdpbusd.128",
}
"""By 32-bit lanes; each takes (vector<Nxi32>, vector<4Nxi8>, vector<4Nxi8>)."""

_TAPS = 4
# Dimensions of the data inside its rows: steps of the loop, and taps of a step.
_INNER = 2
# The dimension of the weights that counts a step's vectors, before lanes and taps.
_VECTOR = 3
_FIRST_LEVEL, _SECOND_LEVEL = 3, 2
# Bytes of weights that do not stay in the second-level cache, and how far ahead they are fetched: a microsecond or two.
_LONG_STREAM = 1 << 18
_AHEAD = 1 << 13
# A loop so short is at its end before anything arrives.
_FEW_STEPS = 32


@dataclass(frozen=True)
class Read:
    """A transfer read: what it reads, where, and how much."""

    buffer: ir.Value
    indices: list[ir.Value]
    shape: list[int]


def contract_to_dot(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Rewrite one contraction; truthy where it is none of u8 x s8 quads."""
    lhs, rhs, acc = op.operands
    rows, weights = bytes_read(lhs, "arith.extui"), bytes_read(rhs, "arith.extsi")
    if rows is None or weights is None:
        return True
    tile = b.shape_of(acc)
    lanes = tile[-1]
    columns = math.prod(weights.shape[:-2])
    holds = lanes in INTRINSICS and rows.shape[-1] == _TAPS and weights.shape[-2:] == [lanes, _TAPS]
    if not holds or math.prod(tile[:-1]) != math.prod(rows.shape[:-1]) * columns:
        return True
    with rewriter.ip, op.location:
        panel = load_quads(weights, lanes)
        axis = _tile_axis(rows)
        if axis is not None:
            _fetch_next_tile(rows, axis)
            _fetch_weights(weights)
        splats = _broadcast_rows(rows, lanes)
        result = acc
        # The tile's outer positions run over rows first and weight vectors last.
        for index, position in enumerate(np.ndindex(*tile[:-1])):
            row, column = divmod(index, columns)
            own = b.extract(acc, position)
            dot = b.intrinsic(INTRINSICS[lanes], own.type, own, splats[row], panel[column])
            result = b.insert(dot, result, position)
    rewriter.replace_op(op, [result])
    return None


def bytes_read(value: ir.Value, extension: str) -> Read | None:
    """The read of the bytes that `value` extends by this op, along contiguous rows; None where it is something else."""
    extended = b.defining(value, extension)
    read = b.defining(extended.operands[0], "vector.transfer_read") if extended else None
    if read is None or not b.is_innermost_contiguous(read.operands[0], 1):
        return None
    rank = len(b.shape_of(read.operands[0]))
    return Read(read.operands[0], list(read.operands)[1 : 1 + rank], b.shape_of(read.results[0]))


def load_quads(read: Read, lanes: int) -> list[ir.Value]:
    """The vectors of a read of [..., lanes, 4], whose two last dimensions lie side by side."""
    flat = b.collapse_inner(read.buffer, 2)
    outer = len(read.indices) - len(read.shape)
    zero = arith.constant(ir.IndexType.get(), 0)
    vectors: list[ir.Value] = []
    for position in np.ndindex(*read.shape[:-2]):
        indices = b.shifted(read.indices[:-2], [0] * outer + list(position))
        vectors.append(b.load(lanes * _TAPS, flat, [*indices, zero]))
    return vectors


def _fetch_next_tile(read: Read, axis: int) -> None:
    """Prefetch from the tile that follows along `axis`, as far into it as this step is into the loop."""
    type_ = ir.MemRefType(read.buffer.type)
    strides, _ = type_.get_strides_and_offset()
    tile, steps = _tile_size(read, axis), type_.shape[-_INNER]
    # Bytes that are new in the next tile, for each step of a loop that reads four.
    stride = -(-tile * strides[axis] // (steps * _TAPS))
    indices = list(read.indices)
    indices[axis] = arith.addi(indices[axis], _index(tile))
    indices[-_INNER] = arith.muli(indices[-_INNER], _index(stride))
    _prefetch(read.buffer, indices, _FIRST_LEVEL)


def _fetch_weights(weights: Read) -> None:
    """Prefetch what lies further on in a stream of weights that is too long to stay near."""
    type_ = ir.MemRefType(weights.buffer.type)
    if math.prod(type_.shape) < _LONG_STREAM:
        return
    vectors = weights.shape[-_VECTOR]
    line = math.prod(weights.shape[1 - _VECTOR :])
    indices = list(weights.indices)
    indices[-_VECTOR - 1] = arith.addi(indices[-_VECTOR - 1], _index(_AHEAD // (vectors * line)))
    for vector_index in range(vectors):
        indices[-_VECTOR] = _index(vector_index)
        _prefetch(weights.buffer, indices, _SECOND_LEVEL)


def _tile_axis(read: Read) -> int | None:
    """The dimension along which tiles follow each other; None where there is one tile, or where steps are too few."""
    type_ = ir.MemRefType(read.buffer.type)
    in_loop = isinstance(read.indices[-_INNER].owner, ir.Block)
    outer = len(read.indices) - len(read.shape)
    axis = next((outer + i for i, size in enumerate(read.shape[:-_INNER]) if size > 1), None)
    if axis is None or not in_loop or type_.shape[-_INNER] < _FEW_STEPS:
        return None
    return axis if type_.shape[axis] > _tile_size(read, axis) else None


def _tile_size(read: Read, axis: int) -> int:
    return read.shape[axis - len(read.indices) + len(read.shape)]


def _index(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)


def _prefetch(buffer: ir.Value, indices: list[ir.Value], level: int) -> None:
    hint = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), level)
    yes, no = ir.BoolAttr.get(True), ir.BoolAttr.get(False)
    attributes = {"isWrite": no, "localityHint": hint, "isDataCache": yes}
    ir.Operation.create("memref.prefetch", operands=[buffer, *indices], attributes=attributes)


def _broadcast_rows(read: Read, lanes: int) -> list[ir.Value]:
    outer = len(read.indices) - len(read.shape)
    i32 = ir.IntegerType.get_signless(32)
    splats: list[ir.Value] = []
    for position in np.ndindex(*read.shape[:-1]):
        indices = b.shifted(read.indices[:-1], [0] * outer + list(position))
        quad = vector.bitcast(b.vector_type(1, 32), b.load(_TAPS, read.buffer, [*indices, read.indices[-1]]))
        attributes = {"static_position": ir.DenseI64ArrayAttr.get([0])}
        word = ir.Operation.create("vector.extract", results=[i32], operands=[quad], attributes=attributes).result
        splats.append(vector.bitcast(b.vector_type(lanes * _TAPS, 8), vector.broadcast(b.vector_type(lanes, 32), word)))
    return splats
