"""`vector.contract` of u8 x s8 -> `vpdpbusd`.

The instruction adds, in each 32-bit lane, four products of an unsigned by a signed byte to the accumulator, exactly.  A
register tile of R rows and V vectors is R * V of them: the weights' four taps per lane as they lie in memory, the row's
four bytes broadcast to all lanes.
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
