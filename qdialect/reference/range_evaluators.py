"""Evaluators of the quantization of run-time ranges."""

from __future__ import annotations

from qdialect.dialect import RangeScaleOp, RangeZeroPointOp
from qdialect.quant_math.range_parameters import range_scale, range_zero_point
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(RangeScaleOp)
def _scale(_: RangeScaleOp, operands: Arrays) -> Array:
    return range_scale(*operands)


@evaluates(RangeZeroPointOp)
def _zero_point(_: RangeZeroPointOp, operands: Arrays) -> Array:
    return range_zero_point(*operands)
