"""Plans pools and resizes of quantized images of 8 and 16 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from qdialect.arithmetic import Division
from qdialect.arithmetic.choices import Coordinates, Interpolation, Nearest, Ratio
from qdialect.arithmetic.resize import Taps, interpolation_taps, nearest_indices, source_coordinates
from qdialect.dialect import AvgPool2DOp, MaxPool2DOp, ResizeBilinearOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import require
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.building.slices import check_indices, gather
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.registry import Building, Emission, Emitter, built, imports, imports_i16
from qdialect.ir._mlir import ir

# AVERAGE_POOL_2D and MAX_POOL_2D.


@imports("AVERAGE_POOL_2D", "MAX_POOL_2D")
@imports_i16("AVERAGE_POOL_2D", "MAX_POOL_2D")
def _pool(operator: Operator) -> Emission:
    """The quantized values of the elements inside are averaged, ties away from zero; padding does not count."""
    (data,), options = checks.operands(operator, 1), checks.window_options(operator)
    if "i16" in (data.element, operator.outputs[0].element):
        checks.same_scale(*checks.one_input(operator))
    else:
        checks.same_quantization(operator, data)
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    window: dict[str, Any] = {"kernel": options.kernel, "strides": options.strides}
    window["padding"] = options.explicit(data.shape[1:3])
    window["output_min"], window["output_max"] = checks.activation_range(options.activation, operator.outputs[0])
    if operator.kind == "MAX_POOL_2D":
        return built(MaxPool2DOp, data, element=data.element, **window)
    how = {"zero_point": operator.outputs[0].zero_point, "division": Division.HALF_AWAY}
    return built(AvgPool2DOp, data, element=data.element, **window, **how)


# RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.

_INTERPOLATIONS = {
    "i8": Interpolation.TFLITE_FIXED,
    "ui8": Interpolation.TFLITE_FLOAT,
    "f32": Interpolation.TFLITE_FLOAT,
}


@imports("RESIZE_BILINEAR")
def _bilinear(operator: Operator) -> Building:
    """The kernels compute in fixed point for i8 and in float32 for the others."""
    coordinates = bilinear_coordinates(operator)
    output = operator.outputs[0].element if operator.outputs else ""
    require(output in _INTERPOLATIONS, f"output must be i8, ui8 or f32, but got {output}")
    data, size = _resized(operator)
    emitter = yield
    value = emitter.value(data)
    if size == data.shape[1:3]:
        return value
    attributes = {"coordinates": coordinates, "arithmetic": _INTERPOLATIONS[output]}
    return emitter.build(ResizeBilinearOp, value, element=data.element, size=size, **attributes)


def bilinear_coordinates(operator: Operator) -> Coordinates:
    """Where the centers of a resized image's elements are."""
    is_aligned, is_half = _alignment(operator)
    centers = Coordinates.HALF_PIXEL if is_half else Coordinates.ASYMMETRIC
    return Coordinates.ALIGN_CORNERS if is_aligned else centers


def _alignment(operator: Operator) -> tuple[bool, ...]:
    """Whether corners, and whether centers are aligned."""
    found = operator.options("AlignCorners", "HalfPixelCenters")
    require(not all(found), "corners and centers must not both be aligned")
    return found


@imports("RESIZE_NEAREST_NEIGHBOR")
def _nearest(operator: Operator) -> Building:
    is_aligned, is_half = _alignment(operator)
    centers = Coordinates.TF_HALF_PIXEL if is_half else Coordinates.ASYMMETRIC
    coordinates = Coordinates.ALIGN_CORNERS if is_aligned else centers
    rounding = Nearest.ROUND_PREFER_CEIL if is_aligned else Nearest.FLOOR
    data, size = _resized(operator)
    check_indices(sum(size), operator.budget)
    emitter = yield
    value = emitter.value(data)
    for axis, (extent, count) in enumerate(zip(data.shape[1:3], size, strict=True), start=1):
        found = source_coordinates(coordinates, Ratio.MULTIPLY, extent, count)
        value = gather(emitter, value, axis, nearest_indices(found, rounding, extent, Ratio.MULTIPLY).tolist())
    return value


def _resized(operator: Operator) -> tuple[Tensor, tuple[int, ...]]:
    """The image, and its new height and width."""
    data, extents = checks.operands(operator, 2)
    checks.same_content(data, operator.outputs[0])
    return data, _size_of(data, extents)


def _size_of(data: Tensor, extents: Tensor) -> tuple[int, ...]:
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    size = checks.integers(extents, "size")
    require(len(size) == 2 and min(size) >= 1, f"size must be 2 integers of at least 1, but got {list(size)}")
    return size


# RESIZE_BILINEAR of 16-bit images, in fixed point.

# Of the weights along both dimensions together.
_FRACTION = 20


@imports_i16("RESIZE_BILINEAR")
def _bilinear_i16(operator: Operator) -> Emission:
    coordinates = bilinear_coordinates(operator)
    data, extents = checks.operands(operator, 2)
    checks.same_scale(checks.sixteen_bit(data, "input"), checks.output_of(operator))
    size = _size_of(data, extents)
    for extent in size:
        check_indices(2 * extent, operator.budget)
    taps = [
        interpolation_taps(Interpolation.TFLITE_FIXED, coordinates, extent, wanted)
        for extent, wanted in zip(data.shape[1:3], size, strict=True)
    ]
    return lambda emitter: _emit_bilinear_i16(emitter, emitter.value(data), taps[0], taps[1])


def _emit_bilinear_i16(emitter: Emitter, image: ir.Value, rows: Taps, columns: Taps) -> ir.Value:
    """The weighted sum of four elements, divided by 2^20 with ties away from zero."""
    s = Arithmetic(emitter)
    terms: list[ir.Value] = []
    for row, row_weight in ((rows.low, rows.low_weight), (rows.high, rows.high_weight)):
        for column, column_weight in ((columns.low, columns.low_weight), (columns.high, columns.high_weight)):
            corner = gather(emitter, gather(emitter, image, 1, row.tolist()), 2, column.tolist())
            weight = np.outer(row_weight, column_weight).astype(np.int64)[None, :, :, None]
            wide = s.resize(corner, "i64")
            terms.append(s.op("arith.muli", wide, emitter.broadcast(emitter.constant(weight), shape_of(wide.type))))
    first, *others = terms
    for term in others:
        first = s.op("arith.addi", first, term)
    magnitude = s.op("arith.addi", s.op("math.absi", first), 1 << (_FRACTION - 1))
    quotient = s.op("arith.shrsi", magnitude, _FRACTION)
    negated = s.op("arith.addi", s.op("arith.xori", quotient, -1), 1)
    return s.resize(s.select(s.compare("lt", first, 0), negated, quotient), "i16")
