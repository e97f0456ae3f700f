"""`vector.contract` of runs of u8 with s8 lane by lane -> `vpdpbusd` on bytes as they lie in memory.

Each 32-bit lane multiplies four bytes of its own by four weights of its own; with ones for weights it is their sum.
"""

from __future__ import annotations

import math

import numpy as np

from qdialect._mlir import ir, rewrite
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.dot_product import INTRINSICS, bytes_read, load_quads


def contract_to_lane_dots(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Rewrite one contraction; truthy where it is none of u8 [.., lanes, 4] x s8 [lanes, 4]."""
    lhs, rhs, acc = op.operands
    data, weights = bytes_read(lhs, "arith.extui"), bytes_read(rhs, "arith.extsi")
    if data is None or weights is None:
        return True
    tile = b.shape_of(acc)
    quads = [tile[-1], 4]
    if tile[-1] not in INTRINSICS or data.shape[-2:] != quads or weights.shape[-2:] != quads:
        return True
    is_by_lane = math.prod(weights.shape[:-2]) == 1 and math.prod(data.shape[:-2]) == math.prod(tile[:-1])
    if not is_by_lane or not b.is_innermost_contiguous(data.buffer, 2):
        return True
    with rewriter.ip, op.location:
        (ones,), rows = load_quads(weights, tile[-1]), load_quads(data, tile[-1])
        result = acc
        for row, position in zip(rows, np.ndindex(*tile[:-1]), strict=True):
            own = b.extract(acc, position)
            result = b.insert(b.intrinsic(INTRINSICS[tile[-1]], own.type, own, row, ones), result, position)
    rewriter.replace_op(op, [result])
    return None
