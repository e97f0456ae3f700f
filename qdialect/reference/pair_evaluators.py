"""Evaluators of the functions of two quantized tensors beside sum and product."""

from __future__ import annotations

import numpy as np

from qdialect.dialect import DivOp, MaximumOp, MinimumOp, PreluOp, SquaredDifferenceOp, SubOp
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.quant_math import PairArithmetic
from qdialect.reference import pairs
from qdialect.reference.elementwise import Affine
from qdialect.reference.evaluators import Array, Arrays, evaluates

_Parameters = tuple[Affine, Affine, Affine, int, int]


def pair_parameters(op: BinaryOp) -> _Parameters:
    """The three quantizations and the clamp of a binary op, as its kernel takes them."""
    lhs, rhs = Affine(op.lhs_scale, op.lhs_zero_point), Affine(op.rhs_scale, op.rhs_zero_point)
    return lhs, rhs, Affine(op.output_scale, op.output_zero_point), op.output_min, op.output_max


@evaluates(SubOp)
def _sub(op: SubOp, operands: Arrays) -> Array:
    return pairs.sub(operands[0], operands[1], *pair_parameters(op), op.arithmetic, op.rounding, op.multiplier)


@evaluates(MaximumOp)
def _maximum(op: MaximumOp, operands: Arrays) -> Array:
    return pairs.extreme(operands[0], operands[1], *pair_parameters(op), is_max=True)


@evaluates(MinimumOp)
def _minimum(op: MinimumOp, operands: Arrays) -> Array:
    return pairs.extreme(operands[0], operands[1], *pair_parameters(op), is_max=False)


@evaluates(SquaredDifferenceOp)
def _squared_difference(op: SquaredDifferenceOp, operands: Arrays) -> Array:
    return pairs.squared_difference(operands[0], operands[1], *pair_parameters(op))


@evaluates(PreluOp)
def _prelu(op: PreluOp, operands: Arrays) -> Array:
    if op.arithmetic is PairArithmetic.FLOAT:
        return pairs.f32_pair(operands[0], operands[1], *pair_parameters(op), pairs.prelu_f32)
    return pairs.prelu_fixed(operands[0], operands[1], *pair_parameters(op))


@evaluates(DivOp)
def _div(op: DivOp, operands: Arrays) -> Array:
    if op.arithmetic is PairArithmetic.FLOAT:
        return pairs.f32_pair(operands[0], operands[1], *pair_parameters(op), np.divide)
    return pairs.div_fixed(operands[0], operands[1], *pair_parameters(op))
