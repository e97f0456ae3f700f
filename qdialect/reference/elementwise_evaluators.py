"""Evaluates element-wise functions beside sums, products and 8-bit tables: of two tensors, of ranges, of 16-bit numbers."""

from __future__ import annotations

import numpy as np

from qdialect.arithmetic import (
    PairArithmetic,
    Rounding,
    elementwise,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from qdialect.arithmetic.fixed_point_functions import fixed_point_table, inverse_root
from qdialect.arithmetic.multipliers import doubling_high_multiply, rounding_shift_right
from qdialect.arithmetic.quantization import range_scale, range_zero_point
from qdialect.dialect import (
    DivOp,
    InterpolatedLutOp,
    MaximumOp,
    MinimumOp,
    PreluOp,
    RangeScaleOp,
    RangeZeroPointOp,
    SquaredDifferenceOp,
    SubOp,
)
from qdialect.dialect.i16_ops import FixedPointFunctionOp, I16LayerNormOp
from qdialect.reference.evaluators import Array, Arrays, evaluates

# Evaluators of the functions of two quantized tensors beside sum and product.


@evaluates(SubOp)
def _sub(op: SubOp, operands: Arrays) -> Array:
    return elementwise.sub(operands[0], operands[1], op.quantization, op.arithmetic, op.rounding, op.multiplier)


@evaluates(MaximumOp)
def _maximum(op: MaximumOp, operands: Arrays) -> Array:
    return elementwise.extreme(operands[0], operands[1], op.quantization, is_max=True)


@evaluates(MinimumOp)
def _minimum(op: MinimumOp, operands: Arrays) -> Array:
    return elementwise.extreme(operands[0], operands[1], op.quantization, is_max=False)


@evaluates(SquaredDifferenceOp)
def _squared_difference(op: SquaredDifferenceOp, operands: Arrays) -> Array:
    return elementwise.squared_difference(operands[0], operands[1], op.quantization)


@evaluates(PreluOp)
def _prelu(op: PreluOp, operands: Arrays) -> Array:
    if op.arithmetic is PairArithmetic.FLOAT:
        return elementwise.f32_pair(operands[0], operands[1], op.quantization, elementwise.prelu_f32)
    return elementwise.prelu_fixed(operands[0], operands[1], op.quantization)


@evaluates(DivOp)
def _div(op: DivOp, operands: Arrays) -> Array:
    if op.arithmetic is PairArithmetic.FLOAT:
        return elementwise.f32_pair(operands[0], operands[1], op.quantization, np.divide)
    return elementwise.div_fixed(operands[0], operands[1], op.quantization)


# Evaluators of the quantization of run-time ranges.


@evaluates(RangeScaleOp)
def _range_scale(_: RangeScaleOp, operands: Arrays) -> Array:
    return range_scale(*operands)


@evaluates(RangeZeroPointOp)
def _range_zero_point(_: RangeZeroPointOp, operands: Arrays) -> Array:
    return range_zero_point(*operands)


# The evaluator of tables with straight lines between their entries.


@evaluates(InterpolatedLutOp)
def _interpolated_lut(op: InterpolatedLutOp, operands: Arrays) -> Array:
    bases, slopes = (np.array(numbers, dtype=np.int64) for numbers in (op.bases, op.slopes))
    x = np.clip(operands[0].astype(np.int64), 0, (len(bases) << op.fraction) - 1)
    index = x >> op.fraction
    # The interpreter's conversion to the result's type keeps the low bits.
    return (bases[index] << op.fraction) + (x - (index << op.fraction)) * slopes[index]


# Evaluators of functions of fixed-point numbers.


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
