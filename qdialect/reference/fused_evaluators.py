"""Evaluators of the fused ops: accumulate, requantize, clamp, residual sum, table."""

from __future__ import annotations

import numpy as np

from qdialect.dialect import AnyFused, FusedConv2DOp, FusedConvTranspose2DOp, FusedDenseOp, FusedOp
from qdialect.dialect.type_constraints import dtype_of
from qdialect.quant_math import AddArithmetic, real_multiplier, requantize, requantize_parameters
from qdialect.reference.contraction_evaluators import accumulators
from qdialect.reference.elementwise import Affine, add
from qdialect.reference.evaluators import Array, Arrays, evaluates
from qdialect.reference.qnn_evaluators import look_up


@evaluates(FusedConv2DOp, FusedConvTranspose2DOp, FusedDenseOp)
def _fused(op: AnyFused, operands: Arrays) -> Array:
    data, weight, bias, *residual = operands
    return _finish(op, accumulators(op, data, weight, bias), residual)


def _finish(op: FusedOp, acc: Array, residual: Arrays) -> Array:
    real = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
    params = requantize_parameters(op.rounding, real)
    codes: Array = requantize(acc, params, op.output_zero_point, op.output_min, op.output_max, op.rounding)
    if residual:
        codes = _add_residual(op, codes, residual[0])
    dtype = dtype_of(op.operation.results[0].type)
    return codes.astype(dtype) if op.table is None else look_up(op.table, codes, dtype)


def _add_residual(op: FusedOp, codes: Array, residual: Array) -> Array:
    own = Affine(op.output_scale, op.output_zero_point)
    other = Affine(op.residual_scale, op.residual_zero_point)
    total = Affine(op.sum_scale, op.sum_zero_point)
    how = (AddArithmetic(op.sum_arithmetic), op.sum_rounding, op.sum_multiplier)
    return add(codes.astype(np.int64), residual, own, other, total, op.sum_min, op.sum_max, *how)
