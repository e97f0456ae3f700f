"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

from collections.abc import Mapping

import tflite

from qdialect._mlir import ir
from qdialect.dialect import QnnOp, ResizeBilinearOp, ResizeNearestOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import integers, operands, same_content
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.reader import read_options
from qdialect.quant_math.choices import Coordinates, Interpolation, Nearest, Ratio

_INTERPOLATIONS = {
    "i8": Interpolation.TFLITE_FIXED,
    "ui8": Interpolation.TFLITE_FLOAT,
    "f32": Interpolation.TFLITE_FLOAT,
}


@imports("RESIZE_BILINEAR")
def _bilinear(operator: Operator) -> Emission:
    """The kernels compute in fixed point for i8 and in float32 for the others."""
    coordinates = bilinear_coordinates(operator)
    output = operator.outputs[0].element if operator.outputs else ""
    require(output in _INTERPOLATIONS, f"output must be i8, ui8 or f32, but got {output}")
    attributes = {"coordinates": coordinates, "arithmetic": _INTERPOLATIONS[output]}
    return _resize(operator, ResizeBilinearOp, attributes)


def bilinear_coordinates(operator: Operator) -> Coordinates:
    """Where the centers of a resized image's elements are."""
    is_aligned, is_half = read_options(
        operator, tflite.ResizeBilinearOptions, lambda options: (options.AlignCorners(), options.HalfPixelCenters())
    )
    require(not (is_aligned and is_half), "corners and centers must not both be aligned")
    centers = Coordinates.HALF_PIXEL if is_half else Coordinates.ASYMMETRIC
    return Coordinates.ALIGN_CORNERS if is_aligned else centers


@imports("RESIZE_NEAREST_NEIGHBOR")
def _nearest(operator: Operator) -> Emission:
    is_aligned, is_half = read_options(
        operator,
        tflite.ResizeNearestNeighborOptions,
        lambda options: (options.AlignCorners(), options.HalfPixelCenters()),
    )
    require(not (is_aligned and is_half), "corners and centers must not both be aligned")
    centers = Coordinates.TF_HALF_PIXEL if is_half else Coordinates.ASYMMETRIC
    attributes = {
        "coordinates": Coordinates.ALIGN_CORNERS if is_aligned else centers,
        "nearest": Nearest.ROUND_PREFER_CEIL if is_aligned else Nearest.FLOOR,
        "ratio": Ratio.MULTIPLY,
    }
    return _resize(operator, ResizeNearestOp, attributes)


def _resize(operator: Operator, op_class: type[QnnOp], attributes: Mapping[str, object]) -> Emission:
    data, extents = operands(operator, 2)
    same_content(data, operator.outputs[0])
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    size = integers(extents, "size")
    require(len(size) == 2 and min(size) >= 1, f"size must be 2 integers of at least 1, but got {list(size)}")

    def emit(emitter: Emitter) -> ir.Value:
        value = emitter.value(data)
        if size == data.shape[1:3]:
            return value
        return emitter.build(op_class, value, element=data.element, size=size, **attributes)

    return emit
