"""Evaluators of the fused ops: accumulate, requantize, clamp, residual sum, table."""

from __future__ import annotations

import numpy as np

from qdialect.dialect import CONTRACTION_CLASSES, AnyFused, FusedOp
from qdialect.dialect.type_constraints import dtype_of
from qdialect.quant_math import (
    AddArithmetic,
    RealScaling,
    ResidualPlace,
    activate,
    dequantize_array,
    real_multiplier,
    requantize,
    requantize_parameters,
    requantize_real,
)
from qdialect.reference.contraction_evaluators import accumulators
from qdialect.reference.elementwise import Affine, add
from qdialect.reference.evaluators import Array, Arrays, evaluates
from qdialect.reference.qnn_evaluators import look_up


@evaluates(*CONTRACTION_CLASSES)
def _fused(op: AnyFused, operands: Arrays) -> Array:
    data, weight, bias, *residual = operands
    acc = accumulators(op, data, weight, _added_first(bias))
    return _finish(op, acc, bias, residual)


def _added_first(bias: Array) -> Array | None:
    """A bias of integers belongs to the accumulators, one of reals does not."""
    return bias if bias.dtype == np.int32 else None


def _finish(op: FusedOp, acc: Array, bias: Array, residual: Arrays) -> Array:
    codes = _rounded(op, acc) if op.real_scaling is RealScaling.NONE else _rounded_real(op, acc, bias, residual)
    if op.adds_codes:
        codes = _add_residual(op, codes, residual[0])
    dtype = dtype_of(op.operation.results[0].type)
    return codes.astype(dtype) if op.table is None else look_up(op.table, codes, dtype)


def _rounded(op: FusedOp, acc: Array) -> Array:
    real = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
    params = requantize_parameters(op.rounding, real)
    return requantize(acc, params, op.output_zero_point, op.output_min, op.output_max, op.rounding)


def _rounded_real(op: FusedOp, acc: Array, bias: Array, residual: Arrays) -> Array:
    """Scaled, bias and residual added, activated, rounded once: every step in float32."""
    scales = real_multiplier(op.input_scale, op.weight_scales, 1.0, op.multiplier).astype(np.float32)
    real = acc.astype(np.float32) * scales
    if _added_first(bias) is None:
        real = real + bias
    if residual and not op.adds_codes:
        real = real + dequantize_array(residual[0], op.residual_scale, op.residual_zero_point, 0)
    real = activate(op.activation, op.activation_alpha, real)
    bounds = (op.output_min, op.output_max)
    return requantize_real(real, op.output_scale, op.output_zero_point, *bounds, op.rounding, op.real_scaling)


def _add_residual(op: FusedOp, codes: Array, residual: Array) -> Array:
    own = Affine(op.output_scale, op.output_zero_point)
    other = Affine(op.residual_scale, op.residual_zero_point)
    total = Affine(op.sum_scale, op.sum_zero_point)
    sides = [(codes.astype(np.int64), own), (residual, other)]
    if op.residual_place is ResidualPlace.LEFT:
        sides.reverse()
    (left, left_affine), (right, right_affine) = sides
    how = (AddArithmetic(op.sum_arithmetic), op.sum_rounding, op.sum_multiplier)
    return add(left, right, left_affine, right_affine, total, op.sum_min, op.sum_max, *how)
