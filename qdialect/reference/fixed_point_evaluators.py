"""Evaluators of functions of fixed-point numbers."""

from __future__ import annotations

import numpy as np

from qdialect.dialect.fixed_point_ops import FixedPointFunctionOp, I16LayerNormOp
from qdialect.quant_math import Rounding, multiply_by_quantized_multiplier, quantize_multiplier
from qdialect.quant_math.fixed_point import doubling_high_multiply, rounding_shift_right
from qdialect.quant_math.fixed_point_functions import fixed_point_table
from qdialect.quant_math.inverse_root import inverse_root
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(FixedPointFunctionOp)
def _fixed_point_function(op: FixedPointFunctionOp, operands: Arrays) -> Array:
    return fixed_point_table(op.function, op.integer_bits)[operands[0].astype(int) + 2**15]


@evaluates(I16LayerNormOp)
def _i16_layer_norm(op: I16LayerNormOp, operands: Arrays) -> Array:
    """TFLite's PortableApplyLayerNorm: quotients are truncated, products with weights wrap around in 32 bits."""
    data, weight, bias = (operand.astype(np.int64) for operand in operands)
    count = data.shape[-1]
    mean = _truncated(data.sum(axis=-1, keepdims=True) * 1024, count)
    squares = (data**2).sum(axis=-1, keepdims=True)
    variance = _truncated(squares * (2**20 // count) - mean**2, 2**20)
    variance = np.where(variance < 1, op.variance_guard, variance)
    roots = [inverse_root(int(one)) for one in variance.ravel()]
    q, shift = (np.array(part, dtype=np.int64).reshape(variance.shape) for part in zip(*roots, strict=True))
    rescaled = rounding_shift_right(doubling_high_multiply(1024 * data - mean, q), shift)
    product = (rescaled * weight + bias).astype(np.int32).astype(np.int64)
    fewer = _truncated(np.where(product > 0, product + 512, product - 512), 1024)
    factor, exponent = quantize_multiplier(op.scale)
    # By 31 bits every number but zero is saturated.
    total = multiply_by_quantized_multiplier(fewer, factor, min(exponent + 12, 31), Rounding.FIXED32_DOUBLE)
    return np.clip(total, -(2**15), 2**15 - 1)


def _truncated(dividend: Array, divisor: int) -> Array:
    """The quotient towards zero."""
    return np.sign(dividend) * (np.abs(dividend) // divisor)
