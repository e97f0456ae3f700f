"""Requantization, and between quantized values and f32 values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DequantizeOp, RequantizeOp
from qdialect.dialect.type_constraints import element_of, range_of, shape_of
from qdialect.passes.tosa.conversion import require
from qdialect.passes.tosa_export.builder import Array, apply, cast, rescale, transpose
from qdialect.passes.tosa_export.export import Export, exports, held_element, sign_of
from qdialect.passes.tosa_export.scaling import centered, held, pairs_of, requantized, takes
from qdialect.passes.tosa_export.tables import is_eight_bit, look_up
from qdialect.quant_math import Rounding, real_multiplier, requantize_parameters
from qdialect.quant_math.multipliers import FixedMultiplier, RequantizeParameters


@exports(RequantizeOp)
def _requantize(export: Export, op: RequantizeOp) -> ir.Value:
    """RESCALE where it has the rounding mode; a table of bytes, or the arithmetic that it is, where not."""
    real = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
    params = requantize_parameters(op.rounding, real)
    rescaled = _rescaled(export, op, params)
    if rescaled is not None:
        return rescaled
    has_channels = len(op.weight_scales) > 1 or len(op.input_zero_points) > 1
    if is_eight_bit(op.input) and is_eight_bit(op.output) and not has_channels:
        return look_up(export, op)
    bound = max(export.bound(op.input, point) for point in op.input_zero_points)
    points = np.array(op.input_zero_points) - sign_of(op.input.type)
    holds = is_narrow(op.input) or not any(op.input_zero_points)
    require(holds, f"input_zero_points must be 0 for i32, but got {list(op.input_zero_points)}")

    def computed(value: ir.Value) -> ir.Value:
        wide = centered(value, points)
        result = requantized(wide, params, op.rounding, bound, op.output_zero_point, range_of(op.output.type))
        return held(result, element_of(op.output.type))

    return _along_last(export.value(op.input), op.axis, computed, has_channels=has_channels)


def _rescaled(export: Export, op: RequantizeOp, params: RequantizeParameters) -> ir.Value | None:
    """By one RESCALE, which has zero points of bytes alone; None where it cannot."""
    points = op.input_zero_points
    has_points = len(points) == 1 and (points[0] == 0 or is_eight_bit(op.input))
    if not has_points or not (op.output_zero_point == 0 or is_eight_bit(op.output)):
        return None
    if not isinstance(params, FixedMultiplier) or not takes(params, op.rounding, export.bound(op.input, points[0])):
        return None
    zero_points = (points[0] - sign_of(op.input.type), op.output_zero_point - sign_of(op.output.type))
    twice, pairs = op.rounding is Rounding.FIXED64_DOUBLE, pairs_of(params)

    def scaled(value: ir.Value) -> ir.Value:
        return rescale(value, held_element(op.output.type), pairs, zero_points, rounds_twice=twice)

    return _along_last(export.value(op.input), op.axis, scaled, has_channels=len(pairs) > 1)


def _along_last(
    value: ir.Value, axis: int, function: Callable[[ir.Value], ir.Value], *, has_channels: bool
) -> ir.Value:
    """`function`, whose channels are those of the last dimension, where they are those of `axis`."""
    rank = len(shape_of(value.type))
    if not has_channels or axis == rank - 1:
        return function(value)
    order = [*(i for i in range(rank) if i != axis), axis]
    return transpose(function(transpose(value, order)), np.argsort(order).tolist())


@exports(DequantizeOp)
def _dequantize(export: Export, op: DequantizeOp) -> ir.Value:
    points = np.array(op.zero_points)
    holds = is_narrow(op.input) or not points.any()
    require(holds, f"zero_points must be 0 for i32, but got {points.tolist()}")
    value, rank = export.value(op.input), len(shape_of(op.input.type))
    offsets = centered(value, along_axis(points - sign_of(op.input.type), rank, op.axis))
    return apply("mul", cast(offsets, "f32"), along_axis(np.array(op.scales, np.float32), rank, op.axis))


def is_narrow(value: ir.Value) -> bool:
    """Whether differences of two elements have 32 bits."""
    return element_of(value.type) != "i32"


def along_axis(parameters: Array, rank: int, axis: int) -> Array:
    """Parameters of the channels of `axis`, shaped to broadcast against a tensor of `rank`."""
    if parameters.size == 1:
        return parameters
    return parameters.reshape([-1 if i == axis else 1 for i in range(rank)])
