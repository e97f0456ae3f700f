"""`vector.contract` of u8 x s8 -> `vpdpbusd`.

The instruction adds, in each 32-bit lane, four products of an unsigned by a signed byte to the accumulator, exactly.  A
register tile of R rows and V vectors is R * V of them: the weights' four taps per lane as they lie in memory, the row's
four bytes broadcast to all lanes.

Weights are one stream, which the processor fetches ahead by itself.  The rows of a tile are many short ones: they are
fetched into the first-level cache while the tile before is at work, a little at each step.
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
# A loop so short is at its end before anything arrives.
_FEW_STEPS = 32


@dataclass(frozen=True)
class _Read:
    """A transfer read: what it reads, where, and how much."""

    buffer: ir.Value
    indices: list[ir.Value]
    shape: list[int]


def contract_to_dot(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Rewrite one contraction; truthy where it is none of u8 x s8 quads."""
    lhs, rhs, acc = op.operands
    rows, weights = _bytes_read(lhs, "arith.extui"), _bytes_read(rhs, "arith.extsi")
    if rows is None or weights is None:
        return True
    tile = b.shape_of(acc)
    lanes = tile[-1]
    columns = math.prod(weights.shape[:-2])
    holds = lanes in INTRINSICS and rows.shape[-1] == _TAPS and weights.shape[-2:] == [lanes, _TAPS]
    if not holds or math.prod(tile[:-1]) != math.prod(rows.shape[:-1]) * columns:
        return True
    with rewriter.ip, op.location:
        panel = _load_weights(weights, lanes)
        _fetch_next_tile(rows)
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


def _bytes_read(value: ir.Value, extension: str) -> _Read | None:
    extended = b.defining(value, extension)
    read = b.defining(extended.operands[0], "vector.transfer_read") if extended else None
    if read is None or not b.is_innermost_contiguous(read.operands[0], 1):
        return None
    rank = len(b.shape_of(read.operands[0]))
    return _Read(read.operands[0], list(read.operands)[1 : 1 + rank], b.shape_of(read.results[0]))


def _load_weights(read: _Read, lanes: int) -> list[ir.Value]:
    flat = b.collapse_inner(read.buffer, 2)
    outer = len(read.indices) - len(read.shape)
    zero = arith.constant(ir.IndexType.get(), 0)
    vectors: list[ir.Value] = []
    for position in np.ndindex(*read.shape[:-2]):
        indices = b.shifted(read.indices[:-2], [0] * outer + list(position))
        vectors.append(b.load(lanes * _TAPS, flat, [*indices, zero]))
    return vectors


def _fetch_next_tile(read: _Read) -> None:
    """Prefetch from the tile that follows along its outermost axis, as far into it as this step is into the loop."""
    outer = len(read.indices) - len(read.shape)
    axis = next((i for i, size in enumerate(read.shape[:-_INNER]) if size > 1), None)
    if axis is None or not isinstance(read.indices[-_INNER].owner, ir.Block):
        return
    type_ = ir.MemRefType(read.buffer.type)
    strides, _ = type_.get_strides_and_offset()
    tile, steps = read.shape[axis], type_.shape[-_INNER]
    if type_.shape[outer + axis] == tile or steps < _FEW_STEPS:
        return
    # Bytes that are new in the next tile, for each step of a loop that reads four.
    stride = -(-tile * strides[outer + axis] // (steps * _TAPS))
    shifts = [tile if i == axis + outer else 0 for i in range(len(read.indices))]
    indices = b.shifted(read.indices, shifts)
    indices[-_INNER] = arith.muli(indices[-_INNER], arith.constant(ir.IndexType.get(), stride))
    yes, no = ir.BoolAttr.get(True), ir.BoolAttr.get(False)
    near = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 3)
    attributes = {"isWrite": no, "localityHint": near, "isDataCache": yes}
    ir.Operation.create("memref.prefetch", operands=[read.buffer, *indices], attributes=attributes)


def _broadcast_rows(read: _Read, lanes: int) -> list[ir.Value]:
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
