"""Means and extremes of 16-bit values over axes."""

from __future__ import annotations

import math

from qdialect._mlir import ir
from qdialect.dialect import IntMaxOp, IntMinOp, IntSumOp
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import check_rescale, operands, quantized_range
from qdialect.frontends.tflite.operators.i16.checks import output_of, same_scale, sixteen_bit
from qdialect.frontends.tflite.operators.i16.fixed_point import FixedPoint, narrowed
from qdialect.frontends.tflite.operators.reduction import reduced_axes
from qdialect.frontends.tflite.operators.registry import Emission, imports_i16
from qdialect.quant_math import Multiplier, Rounding, folded_count_multiplier

_LARGEST_FACTOR = 2.0**30


@imports_i16("MEAN")
def _mean(operator: Operator) -> Emission:
    """The number of elements is part of the factor."""
    axes, keep_dims = reduced_axes(operator)
    data, _ = operands(operator, 2)
    output = output_of(operator)
    ratio = sixteen_bit(data, "input").scale / output.scale
    require(ratio < _LARGEST_FACTOR, f"rescale factor must be in [0, 2^30), but got {ratio}")
    count = math.prod(data.shape[axis] for axis in axes)
    factor, bounds = FixedPoint(*folded_count_multiplier(ratio, count)), quantized_range(output)

    def emit(emitter: Emitter) -> ir.Value:
        s = Arithmetic(emitter)
        wide = s.resize(emitter.value(data), "i32")
        total = emitter.build(IntSumOp, wide, element="i32", axes=axes, keep_dims=keep_dims)
        return narrowed(s, factor.scaled(s, total), bounds)

    return emit


@imports_i16("SUM")
def _sum(operator: Operator) -> Emission:
    """Rescaled once, as LiteRT's kernel does; its reference kernel sums words in 8 bits, which overflow."""
    axes, keep_dims = reduced_axes(operator)
    data, _ = operands(operator, 2)
    output = output_of(operator)
    check_rescale(sixteen_bit(data, "input").scale, [1.0], output.scale, Multiplier.F64)

    def emit(emitter: Emitter) -> ir.Value:
        wide = Arithmetic(emitter).resize(emitter.value(data), "i32")
        total = emitter.build(IntSumOp, wide, element="i32", axes=axes, keep_dims=keep_dims)
        return emitter.requantize(total, output, data.scale, Multiplier.F64, rounding=Rounding.FIXED64_UP)

    return emit


@imports_i16("REDUCE_MAX", "REDUCE_MIN")
def _extreme(operator: Operator) -> Emission:
    """The quantized value of the extreme number is the extreme quantized value."""
    axes, keep_dims = reduced_axes(operator)
    data, _ = operands(operator, 2)
    same_scale(sixteen_bit(data, "input"), output_of(operator))
    op_class = IntMaxOp if operator.kind == "REDUCE_MAX" else IntMinOp
    how = {"axes": axes, "keep_dims": keep_dims}
    return lambda emitter: emitter.build(op_class, emitter.value(data), element="i16", **how)
