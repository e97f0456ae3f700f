"""Rounding, to even or down, and conversion to integers in one `vcvtps2dq`."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import arith, ir, rewrite
from qdialect.lowering.x86 import building as b

CONVERT = "llvm.x86.avx512.mask.cvtps2dq.512"
"""(vector<16xf32>, pass-through vector<16xi32>, mask i16, rounding i32) -> vector<16xi32>."""

_LANES = 16
# Exceptions suppressed: the instruction's own rounding, whatever mode the thread is in.
_ROUNDINGS = {"math.roundeven": 8, "math.floor": 9}


def round_to_convert(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Rewrite one conversion of [..., 16] rounded floats to i32; truthy where it is another one."""
    rounded = next((found for name in _ROUNDINGS if (found := b.defining(op.operands[0], name))), None)
    type_ = op.results[0].type
    if rounded is None or not isinstance(type_, ir.VectorType):
        return True
    shape = list(type_.shape)
    if shape[-1:] != [_LANES] or str(type_.element_type) != "i32":
        return True
    with rewriter.ip, op.location:
        result = b.splat(type_, 0)
        for position in np.ndindex(*shape[:-1]):
            value = b.extract(rounded.operands[0], position) if position else rounded.operands[0]
            converted = _convert(value, _ROUNDINGS[rounded.name])
            result = b.insert(converted, result, position) if position else converted
    rewriter.replace_op(op, [result])
    return None


def _convert(value: ir.Value, how: int) -> ir.Value:
    i16, i32 = ir.IntegerType.get_signless(16), ir.IntegerType.get_signless(32)
    every_lane = arith.constant(i16, ir.IntegerAttr.get(i16, -1))
    rounding = arith.constant(i32, ir.IntegerAttr.get(i32, how))
    lanes = b.vector_type(_LANES, 32)
    return b.intrinsic(CONVERT, lanes, value, b.splat(lanes, 0), every_lane, rounding)
