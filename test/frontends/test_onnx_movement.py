"""What moves elements in ONNX models: which order of dimensions it takes, and what is refused."""

from typing import Any

import numpy as np
import pytest
from drawn_graphs import op_names
from onnx_graphs import ModelBuilder

from qdialect.frontends.onnx import import_onnx
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

X = (0.04, 117)
WEIGHT = np.ones((4, 1, 3, 3), dtype=np.int8)


MOVED: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    ("qnn.slice", "Slice", [np.array([1]), np.array([3]), np.array([1])], {}),
    ("qnn.gather", "Gather", [np.array([3, 0])], {"axis": 1}),
    ("qnn.pad", "Pad", [np.array([0, 0, 1, 1, 0, 0, 1, 1])], {}),
]


@pytest.mark.parametrize(("op", "kind", "operands", "attributes"), MOVED)
def test_channels_stay_last(op: str, kind: str, operands: list[Any], attributes: dict[str, Any]) -> None:
    """Between convolutions nothing is transposed for a movement that works in either order."""
    b = ModelBuilder()
    data = b.dequantize(b.input("x", (1, 4, 8, 8), np.uint8), X)
    first = b.dequantize(b.quantize(b.node("Conv", data, b.weight(WEIGHT, 0.02), group=4), X), X)
    moved = b.node(kind, first, *[b.constant(operand) for operand in operands], **attributes)
    pooled = b.node("MaxPool", b.dequantize(b.quantize(moved, X), X), kernel_shape=[2, 2])
    found = op_names(import_onnx(b.finish(b.quantize(pooled, X))))
    assert found == ["qnn.transpose", "qnn.conv2d", "qnn.requantize", op, "qnn.max_pool2d", "qnn.transpose"]


LONG = np.array
REFUSED: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    ("sizes must be at least 1 and add up to 6, but got [5]", "Split", [LONG([5])], {}),
    ("must have 2 outputs, but got 1", "Split", [LONG([3, 3])], {}),
    ("axis must be in [-2, 2), but got 2", "Split", [], {"axis": 2}),
    ("number of outputs must be in [1, 6], but got 0", "Split", [], {"num_outputs": 0}),
    ("must have 3 to 5 inputs, but got 2", "Slice", [LONG([1])], {}),
    ("step must not be 0", "Slice", [LONG([1]), LONG([2]), LONG([0]), LONG([0])], {}),
    ("axes must name a dimension once, but got [1, 1]", "Slice", [LONG([0, 0]), LONG([1, 1]), LONG([1, -1])], {}),
    (
        "starts, ends, axes and steps must have as many entries, but got [1, 2, 1, 1]",
        "Slice",
        [LONG([0]), LONG([1, 1])],
        {},
    ),
    ("indices must be in [-6, 6)", "Gather", [LONG([6])], {}),
    ("repeats must be 2 integers of at least 1, but got [2]", "Tile", [LONG([2])], {}),
    ("operand shapes must broadcast, but got [6, 4] and [3, 4]", "Expand", [LONG([3, 4])], {}),
    ("mode must be constant or reflect or edge or wrap, but got fold", "Pad", [LONG([0, 0, 0, 0])], {"mode": "fold"}),
    ("pads must be at most 5 in mode reflect, but got 6", "Pad", [LONG([6, 0, 0, 0])], {"mode": "reflect"}),
    ("pads must be at least 0 in mode edge, but got -1", "Pad", [LONG([0, 0, -1, 0])], {"mode": "edge"}),
    (
        "at most 1048576 elements of a dimension can be placed, but got 2097158",
        "Pad",
        [LONG([2**21, 0, 0, 0])],
        {"mode": "wrap"},
    ),
    ("must have 2 to 3 inputs, but got 4", "Pad", [LONG([1]), np.float32(0), LONG([1])], {}),
    ("input must have 4 dimensions, but got 2", "DepthToSpace", [], {"blocksize": 2}),
    ("mode must be DCR or CRD, but got X", "DepthToSpace", [], {"blocksize": 2, "mode": "X"}),
    ("input must have 4 dimensions, but got 2", "SpaceToDepth", [], {"blocksize": 2}),
]


def unsupported(shape: tuple[int, ...], kind: str, operands: list[Any], attributes: dict[str, Any]) -> str:
    b = ModelBuilder()
    given = [b.constant(operand) for operand in operands]
    content = b.finish(b.node(kind, b.input("x", shape, np.uint8), *given, **attributes))
    with pytest.raises(ImportModelError) as caught:
        import_onnx(content)
    return caught.value.diagnostics[0].notes[0].message.partition(": ")[2]


@pytest.mark.parametrize(("reason", "kind", "operands", "attributes"), REFUSED)
def test_refusals(reason: str, kind: str, operands: list[Any], attributes: dict[str, Any]) -> None:
    assert unsupported((6, 4), kind, operands, attributes) == reason


@pytest.mark.parametrize("fill", [0.5, -np.inf, np.nan, 3e9])
def test_a_float_is_padded_with_any_number(fill: float) -> None:
    b = ModelBuilder()
    padded = b.node("Pad", b.input("x", (4,)), b.constant(np.array([1, 2])), b.constant(fill))
    module, x = import_onnx(b.finish(padded, dtype=np.float32)), np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(compile_module(module)(x), np.pad(x, (1, 2), constant_values=fill))


NONE = np.zeros(0, dtype=np.float32)
SIZES = [NONE, NONE, LONG([1, 3, 8, 8])]
RESIZED: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("mode must be nearest or linear or bilinear or cubic, but got lanczos", SIZES, {"mode": "lanczos"}),
    ("keep_aspect_ratio_policy must be stretch, but got not_larger", SIZES, {"keep_aspect_ratio_policy": "not_larger"}),
    (
        "coordinate_transformation_mode must be asymmetric or half_pixel or half_pixel_symmetric or "
        "pytorch_half_pixel or align_corners or tf_half_pixel_for_nn, but got tf_crop_and_resize",
        SIZES,
        {"coordinate_transformation_mode": "tf_crop_and_resize"},
    ),
    (
        "nearest_mode must be floor or ceil or round_prefer_floor or round_prefer_ceil, but got up",
        SIZES,
        {"nearest_mode": "up"},
    ),
    ("scales or sizes must have 4 entries, but got (8, 8)", [NONE, NONE, LONG([8, 8])], {}),
    ("scales or sizes must have 4 entries, but got None", [NONE, NONE], {}),
    ("scales must be finite", [NONE, np.array([1, 1, np.nan, 1], np.float32)], {}),
]


@pytest.mark.parametrize(("reason", "operands", "attributes"), RESIZED)
def test_resizing_that_is_refused(reason: str, operands: list[Any], attributes: dict[str, Any]) -> None:
    assert unsupported((1, 3, 4, 6), "Resize", operands, attributes) == reason


def test_resized_values_keep_their_channels_last() -> None:
    b = ModelBuilder()
    data = b.dequantize(b.input("x", (1, 4, 8, 8), np.uint8), X)
    pooled = b.dequantize(b.quantize(b.node("MaxPool", data, kernel_shape=[2, 2]), X), X)
    sizes = [b.constant(operand) for operand in (NONE, NONE, LONG([1, 4, 14, 14]))]
    resized = b.dequantize(b.quantize(b.node("Resize", pooled, *sizes), X), X)
    last = b.node("MaxPool", resized, kernel_shape=[2, 2])
    found = op_names(import_onnx(b.finish(b.quantize(last, X))))
    assert found == ["qnn.transpose", "qnn.max_pool2d", *["qnn.gather"] * 2, "qnn.max_pool2d", "qnn.transpose"]
