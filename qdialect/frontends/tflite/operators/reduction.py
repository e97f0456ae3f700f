"""Sums, means and extremes over axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tflite

from qdialect._mlir import ir
from qdialect.dialect import L2NormalizeOp, MeanOp, ReduceMaxOp, ReduceMinOp, SumOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import (
    check_rescale,
    eight_bit,
    integers,
    operands,
    same_quantization,
    same_type,
)
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.reader import read_options
from qdialect.profiles import TFLITE
from qdialect.quant_math import Multiplier, Rounding

Axes = tuple[int, ...]


def reduced_axes(operator: Operator) -> tuple[Axes, bool]:
    """The axes of a reduction, distinct and ascending, and whether they stay as extents of 1."""
    keep_dims = read_options(operator, tflite.ReducerOptions, lambda options: options.KeepDims())
    data, axes = operands(operator, 2)
    rank = len(data.shape)
    listed = integers(axes, "axes")
    require(all(-rank <= axis < rank for axis in listed), f"axes must be in [-{rank}, {rank}), but got {list(listed)}")
    distinct = tuple(sorted({axis % rank for axis in listed}))
    require(len(distinct) >= 1 and 0 not in data.shape, "axes must name at least one dimension")
    return distinct, keep_dims


@imports("SUM")
def _sum(operator: Operator) -> Emission:
    """As the reference kernel sums `ui8`; it sums `i8` in 8 bits, which overflow, so those sum as `ui8` do."""
    return _rescaled(operator, SumOp, {"rounding": Rounding.FIXED32_DOUBLE, "multiplier": Multiplier.F64})


@imports("MEAN")
def _mean(operator: Operator) -> Emission:
    """The sum is rescaled by a factor that has the number of elements in it."""
    return _rescaled(operator, MeanOp, TFLITE.rescale)


def _rescaled(operator: Operator, op_class: type[SumOp | MeanOp], rescale: Mapping[str, Any]) -> Emission:
    axes, keep_dims = reduced_axes(operator)
    data, _ = operands(operator, 2)
    output = eight_bit(operator.outputs[0], "output")
    same_type(operator, eight_bit(data, "input"))
    check_rescale(data.scale, [1.0], output.scale, Multiplier.F64)

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(
            op_class,
            emitter.value(data),
            element=output.element,
            axes=axes,
            keep_dims=keep_dims,
            input_scale=data.scale,
            input_zero_point=data.zero_point,
            output_scale=output.scale,
            output_zero_point=output.zero_point,
            **rescale,
        )

    return emit


@imports("REDUCE_MAX", "REDUCE_MIN")
def _extreme(operator: Operator) -> Emission:
    """The quantized value of the extreme number is the extreme quantized value."""
    axes, keep_dims = reduced_axes(operator)
    data, _ = operands(operator, 2)
    same_quantization(operator, data)
    op_class = ReduceMaxOp if operator.kind == "REDUCE_MAX" else ReduceMinOp

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(op_class, emitter.value(data), element=data.element, axes=axes, keep_dims=keep_dims)

    return emit


@imports("L2_NORMALIZATION")
def _l2_normalization(operator: Operator) -> Emission:
    """Along the last dimension, to quantized values of 1/128 around the middle."""
    (data,) = operands(operator, 1)
    output = eight_bit(operator.outputs[0], "output")
    same_type(operator, eight_bit(data, "input"))
    found, wanted = (output.scale, output.zero_point), (1 / 128, 0 if output.element == "i8" else 128)
    require(found == wanted, f"output scale and zero point must be {wanted}, but got {found}")

    def emit(emitter: Emitter) -> ir.Value:
        zero_point = data.zero_point
        return emitter.build(L2NormalizeOp, emitter.value(data), element=output.element, input_zero_point=zero_point)

    return emit
