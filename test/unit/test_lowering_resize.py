"""Compiled resized images equal the reference on every shape and arithmetic."""

import pytest
from compiled_ops import Attributes, check_op, tensor

from qdialect.dialect import ResizeBilinearOp, ResizeNearestOp
from qdialect.dialect.enums import Coordinates, Interpolation, Nearest, Ratio

SHAPES = [
    ((2, 5, 7, 19), (13, 3)),
    ((1, 16, 16, 16), (32, 32)),
    ((1, 1, 1, 64), (3, 2)),
    ((1, 4, 6, 1), (7, 1)),
    ((3, 1, 9, 70), (1, 4)),
    # Eighths, each cell of the input beside the next one eight times; then quarters that follow no pattern.
    ((1, 5, 9, 21), (33, 65)),
    ((2, 5, 8, 40), (3, 5)),
]


@pytest.mark.parametrize("element", ["i8", "ui8", "i16", "i32", "i64", "f32"])
@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_nearest(shape: tuple[int, ...], size: tuple[int, int], element: str) -> None:
    number = len(element) + shape[3]
    choices: Attributes = {"coordinates": tuple(Coordinates)[number % 5], "nearest": tuple(Nearest)[number % 4]}
    for ratio in Ratio:
        check_op(ResizeNearestOp, [tensor(shape, element)], element, size=size, ratio=ratio, **choices)


TAKEN = [
    ("i8", Interpolation.TFLITE_FIXED),
    ("ui8", Interpolation.TFLITE_FIXED),
    ("i8", Interpolation.XNNPACK_FIXED),
    ("ui8", Interpolation.XNNPACK_FIXED),
    ("ui8", Interpolation.TFLITE_FLOAT),
    ("f32", Interpolation.TFLITE_FLOAT),
    ("i8", Interpolation.ONNX_FLOAT),
    ("ui8", Interpolation.ONNX_FLOAT),
    ("f32", Interpolation.ONNX_FLOAT),
]


@pytest.mark.parametrize(("element", "arithmetic"), TAKEN)
@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_bilinear(shape: tuple[int, ...], size: tuple[int, int], element: str, arithmetic: Interpolation) -> None:
    for coordinates in (Coordinates.ASYMMETRIC, Coordinates.HALF_PIXEL, Coordinates.ALIGN_CORNERS):
        attributes: Attributes = {"size": size, "coordinates": coordinates, "arithmetic": arithmetic}
        check_op(ResizeBilinearOp, [tensor(shape, element)], element, **attributes)
