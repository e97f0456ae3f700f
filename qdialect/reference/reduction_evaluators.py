"""Evaluators of the reductions over axes."""

from __future__ import annotations

from qdialect.dialect import ArgMaxOp, ArgMinOp, L2NormalizeOp, ReduceMaxOp, ReduceMinOp, SumOp
from qdialect.dialect.type_constraints import range_of
from qdialect.quant_math import QuantParams
from qdialect.reference import reductions
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(ArgMaxOp)
def _arg_max(op: ArgMaxOp, operands: Arrays) -> Array:
    return reductions.arg_max(operands[0], op.axis, op.keep_dims, op.last)


@evaluates(ArgMinOp)
def _arg_min(op: ArgMinOp, operands: Arrays) -> Array:
    return reductions.arg_min(operands[0], op.axis, op.keep_dims, op.last)


@evaluates(SumOp)
def _sum(op: SumOp, operands: Arrays) -> Array:
    source, output = (
        QuantParams(op.input_scale, op.input_zero_point),
        QuantParams(op.output_scale, op.output_zero_point),
    )
    bounds = range_of(op.output.type)
    return reductions.sum_over(operands[0], op.axes, op.keep_dims, source, output, *bounds, op.rounding, op.multiplier)


@evaluates(ReduceMaxOp)
def _reduce_max(op: ReduceMaxOp, operands: Arrays) -> Array:
    return operands[0].max(axis=op.axes, keepdims=op.keep_dims)


@evaluates(ReduceMinOp)
def _reduce_min(op: ReduceMinOp, operands: Arrays) -> Array:
    return operands[0].min(axis=op.axes, keepdims=op.keep_dims)


@evaluates(L2NormalizeOp)
def _l2_normalize(op: L2NormalizeOp, operands: Arrays) -> Array:
    return reductions.l2_normalize(operands[0], op.input_zero_point)
