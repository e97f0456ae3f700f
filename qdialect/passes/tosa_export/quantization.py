"""Exports requantization, tables, and what lies between quantized values and f32 values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qdialect.arithmetic import Rounding, Scaling, real_multiplier, requantize_parameters
from qdialect.arithmetic.multipliers import FixedMultiplier, RequantizeParameters
from qdialect.arithmetic.quantization import nan_value, scale_factors
from qdialect.dialect import DequantizeOp, LutOp, QnnOp, QuantizeOp, RequantizeOp, UnaryOp
from qdialect.dialect.op_base import for_each_op
from qdialect.dialect.type_constraints import dtype_of, element_of, range_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa_export import builder
from qdialect.passes.tosa_export.export import Export, exports, held_element, require, sign_of, signed
from qdialect.passes.tosa_export.scaling import (
    centered,
    held,
    is_power_of_two,
    pairs_of,
    quotient,
    requantized,
    rounded,
    takes,
)
from qdialect.reference.evaluators import EVALUATORS

# Functions of one 8-bit tensor: a TABLE of what the reference makes of all 256 values.


def is_eight_bit(value: ir.Value) -> bool:
    """Whether the elements of a `qnn` value have 8 bits."""
    return element_of(value.type) in ("i8", "ui8")


def look_up(export: Export, op: QnnOp) -> ir.Value:
    """The result of an op that maps every value of its one 8-bit operand by itself."""
    source = op.operation.operands[0]
    dtype = np.dtype(dtype_of(source.type).name)
    info = np.iinfo(dtype.name)
    found: builder.Array = EVALUATORS[op.operation.name](op, [np.arange(info.min, int(info.max) + 1).astype(dtype)])
    entries = signed(found.astype(dtype_of(op.operation.results[0].type)))
    return builder.create("table", [export.value(source), builder.const(entries)], shape_of(source.type), "i8")


for_each_op(LutOp, UnaryOp)(lambda op_class: exports(op_class)(look_up))


# Requantization, and between quantized values and f32 values.


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
        return builder.rescale(value, held_element(op.output.type), pairs, zero_points, rounds_twice=twice)

    return _along_last(export.value(op.input), op.axis, scaled, has_channels=len(pairs) > 1)


def _along_last(
    value: ir.Value, axis: int, function: Callable[[ir.Value], ir.Value], *, has_channels: bool
) -> ir.Value:
    """`function`, whose channels are those of the last dimension, where they are those of `axis`."""
    rank = len(shape_of(value.type))
    if not has_channels or axis == rank - 1:
        return function(value)
    order = [*(i for i in range(rank) if i != axis), axis]
    return builder.transpose(function(builder.transpose(value, order)), np.argsort(order).tolist())


@exports(DequantizeOp)
def _dequantize(export: Export, op: DequantizeOp) -> ir.Value:
    points = np.array(op.zero_points)
    holds = is_narrow(op.input) or not points.any()
    require(holds, f"zero_points must be 0 for i32, but got {points.tolist()}")
    value, rank = export.value(op.input), len(shape_of(op.input.type))
    offsets = centered(value, along_axis(points - sign_of(op.input.type), rank, op.axis))
    return builder.apply(
        "mul", builder.cast(offsets, "f32"), along_axis(np.array(op.scales, np.float32), rank, op.axis)
    )


def is_narrow(value: ir.Value) -> bool:
    """Whether differences of two elements have 32 bits."""
    return element_of(value.type) != "i32"


def along_axis(parameters: builder.Array, rank: int, axis: int) -> builder.Array:
    """Parameters of the channels of `axis`, shaped to broadcast against a tensor of `rank`."""
    if parameters.size == 1:
        return parameters
    return parameters.reshape([-1 if i == axis else 1 for i in range(rank)])


# Quantized values of f32 values.

_WIDEST = 16


@exports(QuantizeOp)
def _quantize(export: Export, op: QuantizeOp) -> ir.Value:
    """NaN becomes the value that the op chooses for it; until then it counts as 0."""
    value, element = export.value(op.input), element_of(op.output.type)
    bits = int(element.removeprefix("u")[1:])
    require(bits <= _WIDEST, f"result must have at most {_WIDEST} bits, but got {element}")
    is_number = builder.apply("equal", value, value)
    known = builder.select(is_number, value, builder.filled(0, value))
    quantized = _quotient(op, known) if op.scaling is Scaling.DIVIDE else _product(op, known)
    low, high = range_of(op.output.type)
    points = along_axis(np.array(op.zero_points), len(shape_of(value.type)), op.axis)
    of_nan = builder.filled(np.asarray(nan_value(op.nan, points, low, high)), quantized)
    return held(builder.select(is_number, quantized, of_nan), element)


def _quotient(op: QuantizeOp, value: ir.Value) -> ir.Value:
    if len(op.scales) == len(op.zero_points) == 1:
        return quotient(value, op.scales[0], op.zero_points[0], range_of(op.output.type), op.rounding)
    found = [scale for scale in op.scales if not is_power_of_two(scale)]
    wanted = 'scales of several channels must be powers of two where scaling is "divide"'
    require(not found, f"{wanted}, but got {found[0] if found else ''}")
    return _product(op, value)


def _product(op: QuantizeOp, value: ir.Value) -> ir.Value:
    """Rounded products with the reciprocals, with the zero points, within the range, as i32."""
    rank = len(shape_of(value.type))
    scaling = Scaling.RECIPROCAL_F32 if op.scaling is Scaling.DIVIDE else op.scaling
    factors = np.asarray(scale_factors(op.scales, scaling), np.float32).reshape(-1)
    ratio = builder.apply("mul", value, along_axis(factors, rank, op.axis))
    low, high = range_of(op.output.type)
    points = along_axis(np.array(op.zero_points), rank, op.axis)
    near = builder.clamp(rounded(ratio, op.rounding), low - int(points.max()), high - int(points.min()))
    return builder.clamp(builder.apply("add", builder.cast(near, "i32"), points), low, high)
