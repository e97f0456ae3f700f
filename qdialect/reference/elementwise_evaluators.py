"""Evaluates element-wise functions other than sums, products and 8-bit tables: binary ones, ranges, 16-bit tables."""

from __future__ import annotations

import numpy as np

from qdialect.arithmetic import PairArithmetic, elementwise
from qdialect.arithmetic.fixed_point_functions import (
    fixed_point_table,
    inverse_roots,
    layer_normalized,
    row_mean,
    row_variance,
)
from qdialect.arithmetic.machine import NUMPY
from qdialect.arithmetic.ranges import range_scale, range_zero_point
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

# Evaluators of the functions of two quantized tensors other than sum and product.


evaluates(SubOp)(lambda op, x: elementwise.sub(x[0], x[1], op.quantization, op.arithmetic, op.rounding, op.multiplier))
evaluates(MaximumOp)(lambda op, x: elementwise.extreme(x[0], x[1], op.quantization, is_max=True))
evaluates(MinimumOp)(lambda op, x: elementwise.extreme(x[0], x[1], op.quantization, is_max=False))
evaluates(SquaredDifferenceOp)(lambda op, x: elementwise.squared_difference(x[0], x[1], op.quantization))


@evaluates(PreluOp)
def _prelu(op: PreluOp, operands: Arrays) -> Array:
    if op.arithmetic is PairArithmetic.FLOAT:
        return elementwise.f32_pair(operands[0], operands[1], op.quantization, elementwise.with_slope)
    return elementwise.prelu_fixed(operands[0], operands[1], op.quantization)


@evaluates(DivOp)
def _div(op: DivOp, operands: Arrays) -> Array:
    if op.arithmetic is PairArithmetic.FLOAT:
        return elementwise.f32_pair(operands[0], operands[1], op.quantization, elementwise.quotient)
    return elementwise.div_fixed(operands[0], operands[1], op.quantization)


# Evaluators of the quantization of run-time ranges.


evaluates(RangeScaleOp)(lambda _, x: range_scale(*x))
evaluates(RangeZeroPointOp)(lambda _, x: range_zero_point(*x))


# The evaluator of tables with straight lines between their entries.


@evaluates(InterpolatedLutOp)
def _interpolated_lut(op: InterpolatedLutOp, operands: Arrays) -> Array:
    bases, slopes = (np.array(numbers, dtype=np.int64) for numbers in (op.bases, op.slopes))
    x = np.clip(operands[0].astype(np.int64), 0, (len(bases) << op.fraction) - 1)
    index = x >> op.fraction
    # The interpreter's conversion to the result's type keeps the low bits.
    return (bases[index] << op.fraction) + (x - (index << op.fraction)) * slopes[index]


# Evaluators of functions of fixed-point numbers.


evaluates(FixedPointFunctionOp)(lambda op, x: fixed_point_table(op.function, op.integer_bits)[x[0].astype(int) + 2**15])


@evaluates(I16LayerNormOp)
def _i16_layer_norm(op: I16LayerNormOp, operands: Arrays) -> Array:
    data, weight, bias = (operand.astype(np.int64) for operand in operands)
    count = data.shape[-1]
    mean = row_mean(NUMPY, data.sum(axis=-1, keepdims=True), count).astype(np.int64)
    variance = row_variance(NUMPY, (data**2).sum(axis=-1, keepdims=True), mean, count, op.variance_guard)
    return layer_normalized(NUMPY, data, mean, *inverse_roots(variance), weight, bias, op.scale)
