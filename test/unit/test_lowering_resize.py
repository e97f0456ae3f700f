"""Compiled resized images equal the reference on every shape and arithmetic."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import Attributes, check, check_variants, tensor
from graphs import graph
from together import variants_together

from qdialect.arithmetic.choices import Coordinates, Interpolation, Nearest, Ratio
from qdialect.dialect import ArgMaxOp, ArgMinOp, ClipOp, ResizeBilinearOp, ResizeNearestOp, build
from qdialect.dialect.type_constraints import ELEMENT_RANGES
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference.interpreter import run
from qdialect.runtime import compile_module
from qdialect.targets import GENERIC

CLIP, RESIZE, ARG_MAX = "qnn.clip", "qnn.resize_bilinear", "qnn.arg_max"

SHAPES = [
    ((2, 5, 7, 19), (13, 3)),
    ((1, 16, 16, 16), (32, 32)),
    ((1, 1, 1, 64), (3, 2)),
    ((1, 4, 6, 1), (7, 1)),
    ((3, 1, 9, 70), (1, 4)),
    # Eighths, each cell of the input beside the next one eight times; then quarters that follow no pattern.
    ((1, 5, 9, 21), (33, 65)),
    ((2, 5, 8, 40), (3, 5)),
    # Half pixels of eighths: 8 fraction bits in all.
    ((1, 2, 3, 21), (16, 24)),
]


@variants_together
@pytest.mark.parametrize("element", ["i8", "ui8", "i16", "i32", "i64", "f32"])
@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_nearest(shape: tuple[int, ...], size: tuple[int, int], element: str) -> None:
    number = len(element) + shape[3]
    choices: Attributes = {"coordinates": tuple(Coordinates)[number % 5], "nearest": tuple(Nearest)[number % 4]}
    variants: list[Attributes] = [{"size": size, "ratio": ratio, **choices} for ratio in Ratio]
    check_variants(ResizeNearestOp, [tensor(shape, element)], element, variants)


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


@variants_together
@pytest.mark.parametrize("arithmetic", range(len(TAKEN)))
@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_bilinear(shape: int, arithmetic: int) -> None:
    """Every arithmetic and every shape meets each way to place pixels."""
    (extents, size), (element, how) = SHAPES[shape], TAKEN[arithmetic]
    places = (Coordinates.ASYMMETRIC, Coordinates.HALF_PIXEL, Coordinates.ALIGN_CORNERS)
    variant: Attributes = {"size": size, "coordinates": places[(shape + arithmetic) % 3], "arithmetic": how}
    check_variants(ResizeBilinearOp, [tensor(extents, element)], element, [variant])


@pytest.mark.parametrize(("element", "arithmetic"), [taken for taken in TAKEN if taken[0] != "f32"])
def test_bilinear_blends_of_extreme_values_fit_their_numbers(element: str, arithmetic: Interpolation) -> None:
    how: Attributes = {"size": (16, 24), "coordinates": Coordinates.HALF_PIXEL, "arithmetic": arithmetic}
    module = graph(
        [tensor((1, 2, 3, 35), element)],
        lambda image: build(ResizeBilinearOp, image, element=element, **how).output,
    )
    lowest, highest = ELEMENT_RANGES[element]
    executable = compile_module(module)
    for left, right in ((highest, highest), (lowest, highest), (highest, lowest), (lowest, lowest)):
        image = np.full((1, 2, 3, 35), left, np.uint8 if element == "ui8" else np.int8)
        image[:, 1, 1:] = right
        np.testing.assert_array_equal(executable(image), run(module, [image])[0])


COORDINATES: Attributes = {"coordinates": Coordinates.ALIGN_CORNERS, "arithmetic": Interpolation.TFLITE_FIXED}


def _arg_of_resized(element: str, shape: tuple[int, ...], size: tuple[int, int], **attributes: Any) -> ir.Module:
    """Few distinct quantized values, so that many are equal."""
    low = ELEMENT_RANGES[element][0]

    def body(image: ir.Value) -> ir.Value:
        values = build(ClipOp, image, element=element, min=low + 126, max=low + 129).output
        resized = build(ResizeBilinearOp, values, element=element, size=size, **COORDINATES).output
        return build(attributes["op"], resized, element="i64", **attributes["how"]).output

    return graph([tensor(shape, element)], body)


@variants_together
@pytest.mark.parametrize("op", [ArgMaxOp, ArgMinOp])
@pytest.mark.parametrize(
    ("shape", "size"),
    [((1, 5, 9, 21), (33, 65)), ((2, 5, 7, 3), (13, 3)), ((1, 3, 5, 40), (5, 7)), ((2, 2, 3, 300), (3, 5))],
)
def test_extreme_channel_of_a_resized_image(op: Any, shape: tuple[int, ...], size: tuple[int, int]) -> None:
    for element, last, keep_dims in (("i8", False, False), ("ui8", True, True)):
        how = {"axis": 3, "last": last, "keep_dims": keep_dims}
        check(_arg_of_resized(element, shape, size, op=op, how=how))


@pytest.mark.parametrize(("axis", "steps"), [(3, [CLIP, ARG_MAX]), (1, [CLIP, RESIZE, ARG_MAX])])
def test_a_resized_image_is_not_stored_for_its_extreme_channel(axis: int, steps: list[str]) -> None:
    how = {"axis": axis, "last": False, "keep_dims": True}
    module = _arg_of_resized("ui8", (1, 3, 5, 16), (5, 9), op=ArgMaxOp, how=how)
    assert [label for label in lower(module, GENERIC, Phase.LINALG).labels if label.startswith("qnn.")] == steps
