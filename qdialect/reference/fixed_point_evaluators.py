"""Evaluator of functions of fixed-point numbers."""

from __future__ import annotations

from qdialect.dialect.fixed_point_ops import FixedPointFunctionOp
from qdialect.quant_math.fixed_point_functions import fixed_point_table
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(FixedPointFunctionOp)
def _fixed_point_function(op: FixedPointFunctionOp, operands: Arrays) -> Array:
    return fixed_point_table(op.function, op.integer_bits)[operands[0].astype(int) + 2**15]
