"""Exports requantization, tables, and what lies between quantized values and f32 values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qdialect.arithmetic import Rounding, Scaling, real_multiplier, requantize_parameters
from qdialect.arithmetic.multipliers import RequantizeParameters
from qdialect.arithmetic.quantization import along_axis, nan_value, scale_factors
from qdialect.dialect import DequantizeOp, LutOp, QnnOp, QuantizeOp, RequantizeOp, UnaryOp
from qdialect.dialect.op_base import for_each_op
from qdialect.dialect.type_constraints import NARROW_ELEMENTS, dtype_of, element_of, range_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.tabulate import is_eight_bit
from qdialect.passes.tosa_export import builder, scaling
from qdialect.passes.tosa_export.builder import apply, cast, clamp, filled, select, transpose
from qdialect.passes.tosa_export.export import Export, exports, require, sign_of, signed
from qdialect.reference.evaluators import EVALUATORS


def look_up(export: Export, op: QnnOp) -> ir.Value:
    """The result of an op that maps every value of its one 8-bit operand by itself."""
    source = op.operation.operands[0]
    found: builder.Array = EVALUATORS[op.operation.name](op, [builder.every_value(source.type)])
    entries = signed(found.astype(dtype_of(op.operation.results[0].type)))
    return builder.create("table", [export.value(source), builder.const(entries)], shape_of(source.type), "i8")


for_each_op(LutOp, UnaryOp)(lambda op_class: exports(op_class)(look_up))


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
    holds = element_of(op.input.type) in NARROW_ELEMENTS or not any(op.input_zero_points)
    require(holds, f"input_zero_points must be 0 for i32, but got {list(op.input_zero_points)}")

    how = scaling.Requantization(params, op.rounding, bound, op.output_zero_point, range_of(op.output.type))

    def computed(value: ir.Value) -> ir.Value:
        return scaling.held(how.of(scaling.centered(value, points)), element_of(op.output.type))

    return _along_last(export.value(op.input), op.axis, computed, has_channels=has_channels)


def _rescaled(export: Export, op: RequantizeOp, params: RequantizeParameters) -> ir.Value | None:
    """By one RESCALE, which has zero points of bytes alone; None where it cannot."""
    points = op.input_zero_points
    has_points = len(points) == 1 and (points[0] == 0 or is_eight_bit(op.input))
    if not has_points or not (op.output_zero_point == 0 or is_eight_bit(op.output)):
        return None
    if not scaling.takes(params, op.rounding, export.bound(op.input, points[0])):
        return None
    zero_points = (points[0] - sign_of(op.input.type), op.output_zero_point - sign_of(op.output.type))
    twice, pairs = op.rounding is Rounding.FIXED64_DOUBLE, scaling.pairs_of(params)
    element = "i8" if is_eight_bit(op.output) else element_of(op.output.type)

    def scaled(value: ir.Value) -> ir.Value:
        return builder.rescale(value, element, pairs, zero_points, rounds_twice=twice)

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
    holds = element_of(op.input.type) in NARROW_ELEMENTS or not points.any()
    require(holds, f"zero_points must be 0 for i32, but got {points.tolist()}")
    value, rank = export.value(op.input), len(shape_of(op.input.type))
    offsets = scaling.centered(value, along_axis(points - sign_of(op.input.type), rank, op.axis))
    return apply("mul", cast(offsets, "f32"), along_axis(np.array(op.scales, np.float32), rank, op.axis))


_WIDEST = 16


@exports(QuantizeOp)
def _quantize(export: Export, op: QuantizeOp) -> ir.Value:
    """NaN becomes the value that the op chooses for it; until then it counts as 0."""
    value, element = export.value(op.input), element_of(op.output.type)
    bits = int(element.removeprefix("u")[1:])
    require(bits <= _WIDEST, f"result must have at most {_WIDEST} bits, but got {element}")
    is_number = apply("equal", value, value)
    known = select(is_number, value, filled(0, value))
    quantized = _quotient(op, known) if op.scaling is Scaling.DIVIDE else _product(op, known)
    low, high = range_of(op.output.type)
    points = along_axis(np.array(op.zero_points), len(shape_of(value.type)), op.axis)
    of_nan = filled(np.asarray(nan_value(op.nan, points, low, high)), quantized)
    return scaling.held(select(is_number, quantized, of_nan), element)


def _quotient(op: QuantizeOp, value: ir.Value) -> ir.Value:
    if len(op.scales) == len(op.zero_points) == 1:
        return scaling.quotient(value, op.scales[0], op.zero_points[0], range_of(op.output.type), op.rounding)
    found = [scale for scale in op.scales if not scaling.is_power_of_two(scale)]
    wanted = 'scales of several channels must be powers of two where scaling is "divide"'
    require(not found, f"{wanted}, but got {found[0] if found else ''}")
    return _product(op, value)


def _product(op: QuantizeOp, value: ir.Value) -> ir.Value:
    """Rounded products with the reciprocals, with the zero points, within the range, as i32."""
    rank = len(shape_of(value.type))
    how = Scaling.RECIPROCAL_F32 if op.scaling is Scaling.DIVIDE else op.scaling
    factors = np.asarray(scale_factors(op.scales, how), np.float32).reshape(-1)
    ratio = apply("mul", value, along_axis(factors, rank, op.axis))
    low, high = range_of(op.output.type)
    points = along_axis(np.array(op.zero_points), rank, op.axis)
    near = clamp(scaling.rounded(ratio, op.rounding), low - int(points.max()), high - int(points.min()))
    return clamp(apply("add", cast(near, "i32"), points), low, high)
