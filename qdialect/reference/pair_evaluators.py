"""Evaluators of the functions of two quantized tensors beside sum and product."""

from __future__ import annotations

import numpy as np

from qdialect.dialect import DivOp, MaximumOp, MinimumOp, PreluOp, SquaredDifferenceOp, SubOp
from qdialect.quant_math import PairArithmetic, pairs
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(SubOp)
def _sub(op: SubOp, operands: Arrays) -> Array:
    return pairs.sub(operands[0], operands[1], op.quantization, op.arithmetic, op.rounding, op.multiplier)


@evaluates(MaximumOp)
def _maximum(op: MaximumOp, operands: Arrays) -> Array:
    return pairs.extreme(operands[0], operands[1], op.quantization, is_max=True)


@evaluates(MinimumOp)
def _minimum(op: MinimumOp, operands: Arrays) -> Array:
    return pairs.extreme(operands[0], operands[1], op.quantization, is_max=False)


@evaluates(SquaredDifferenceOp)
def _squared_difference(op: SquaredDifferenceOp, operands: Arrays) -> Array:
    return pairs.squared_difference(operands[0], operands[1], op.quantization)


@evaluates(PreluOp)
def _prelu(op: PreluOp, operands: Arrays) -> Array:
    if op.arithmetic is PairArithmetic.FLOAT:
        return pairs.f32_pair(operands[0], operands[1], op.quantization, pairs.prelu_f32)
    return pairs.prelu_fixed(operands[0], operands[1], op.quantization)


@evaluates(DivOp)
def _div(op: DivOp, operands: Arrays) -> Array:
    if op.arithmetic is PairArithmetic.FLOAT:
        return pairs.f32_pair(operands[0], operands[1], op.quantization, np.divide)
    return pairs.div_fixed(operands[0], operands[1], op.quantization)
