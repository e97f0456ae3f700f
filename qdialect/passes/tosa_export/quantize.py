"""Quantized values of f32 values."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import QuantizeOp
from qdialect.dialect.type_constraints import element_of, range_of, shape_of
from qdialect.passes.tosa.conversion import require
from qdialect.passes.tosa_export.builder import apply, cast, clamp, filled, select
from qdialect.passes.tosa_export.division import is_power_of_two, quotient, rounded
from qdialect.passes.tosa_export.export import Export, exports
from qdialect.passes.tosa_export.quantization import along_axis
from qdialect.passes.tosa_export.scaling import held
from qdialect.quant_math import Scaling
from qdialect.quant_math.affine import nan_value
from qdialect.quant_math.scales import scale_factors

_WIDEST = 16


@exports(QuantizeOp)
def _quantize(export: Export, op: QuantizeOp) -> ir.Value:
    """NaN becomes what the op says, before which it is taken as 0."""
    value, element = export.value(op.input), element_of(op.output.type)
    bits = int(element.removeprefix("u")[1:])
    require(bits <= _WIDEST, f"result must have at most {_WIDEST} bits, but got {element}")
    is_number = apply("equal", value, value)
    known = select(is_number, value, filled(0, value))
    quantized = _quotient(op, known) if op.scaling is Scaling.DIVIDE else _product(op, known)
    low, high = range_of(op.output.type)
    points = along_axis(np.array(op.zero_points), len(shape_of(value.type)), op.axis)
    of_nan = filled(np.asarray(nan_value(op.nan, points, low, high)), quantized)
    return held(select(is_number, quantized, of_nan), element)


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
    ratio = apply("mul", value, along_axis(factors, rank, op.axis))
    low, high = range_of(op.output.type)
    points = along_axis(np.array(op.zero_points), rank, op.axis)
    near = clamp(rounded(ratio, op.rounding), low - int(points.max()), high - int(points.min()))
    return clamp(apply("add", cast(near, "i32"), points), low, high)
