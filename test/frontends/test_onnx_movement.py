"""What moves elements in ONNX models: which order of dimensions it takes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled_ops import variants_together
from onnx_evaluated import check, expected, found_by, refused
from onnx_evaluated import drawn as drawn_values
from onnx_graphs import ModelBuilder, drawn, f32_values, quantized_of, run
from tolerances import assert_floats_within

from qdialect.frontends.onnx import import_onnx
from qdialect.ir._mlir import ir
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

X = (0.04, 117)
WEIGHT = np.ones((4, 1, 3, 3), dtype=np.int8)


def names(module: ir.Module) -> list[str]:
    found = [op.operation.name for op in module.body.operations[0].regions[0].blocks[0].operations]
    return [name for name in found if name not in ("qnn.constant", "func.return")]


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
    found = names(import_onnx(b.finish(b.quantize(pooled, X))))
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
    ("shape must be one that [6, 4] broadcasts with, but got [3, 4]", "Expand", [LONG([3, 4])], {}),
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
def test_what_does_not_fit_is_refused(reason: str, kind: str, operands: list[Any], attributes: dict[str, Any]) -> None:
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
    found = names(import_onnx(b.finish(b.quantize(last, X))))
    assert found == ["qnn.transpose", "qnn.max_pool2d", *["qnn.gather"] * 2, "qnn.max_pool2d", "qnn.transpose"]


@pytest.mark.parametrize("fill", [0.3, -np.inf])
def test_a_pad_between_two_values_is_rounded_by_the_quantization_after_it(fill: float) -> None:
    x, (before, after) = drawn((2, 3), np.uint8), ((0.25, 7), (0.013, 90))
    b = ModelBuilder()
    data = b.dequantize(b.input("x", x.shape, np.uint8), before)
    padded = b.node("Pad", data, b.constant(np.array([0, 1, 0, 0])), b.constant(fill))
    wanted = np.pad(f32_values(x, before), ((0, 0), (1, 0)), constant_values=np.float32(fill))
    with np.errstate(invalid="ignore"):
        assert np.array_equal(run(b.finish(b.quantize(padded, after)), x), quantized_of(wanted, after))


# Einsum, triangles, one-hot vectors and norms: operators that become several ops.

EINSUMS = [
    ("bhid,bhjd->bhij", (2, 3, 5, 4), (2, 3, 7, 4)),
    ("bhij,bhjd->bhid", (2, 3, 5, 7), (2, 3, 7, 4)),
    ("bij,jk->bik", (2, 5, 7), (7, 4)),
    ("ij,jk", (5, 7), (7, 4)),
    ("...ij,...jk->...ik", (2, 3, 5, 7), (2, 3, 7, 4)),
    ("bi,bj->bij", (2, 5), (2, 4)),
    ("i,i->", (5,), (5,)),
    ("bqnd,bknd->bnqk", (2, 5, 3, 4), (2, 7, 3, 4)),
    ("bnqk,bknd->bqnd", (2, 3, 5, 7), (2, 7, 3, 4)),
    ("ijk,ik->j", (3, 4, 5), (3, 5)),
]


@variants_together
@pytest.mark.parametrize(("equation", "lhs", "rhs"), EINSUMS)
def test_sums_of_products_by_their_labels(equation: str, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> None:
    """Of small whole numbers, whose sums are exact in every order."""
    check("Einsum", [drawn_values(lhs, np.float32), drawn_values(rhs, np.float32, 1)], equation=equation)


@variants_together
@pytest.mark.parametrize("equation", ["ijk->kij", "ijk->ik", "...k->k...", "ijk->"])
def test_labels_of_one_tensor(equation: str) -> None:
    check("Einsum", [drawn_values((2, 3, 5), np.float32)], equation=equation)


def test_equations_that_do_not_fit_are_refused() -> None:
    cases = {
        "ii->i": "labels of a term must differ",
        "ij->k": "must name labels of its operands",
        "i->i": "a label for",
    }
    for equation, message in cases.items():
        model = ModelBuilder()
        found = model.node("Einsum", model.input("x", (3, 3)), equation=equation)
        assert message in refused(model.finish(found))


@variants_together
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
@pytest.mark.parametrize("upper", [0, 1])
def test_triangles(dtype: Any, upper: int) -> None:
    check("Trilu", [drawn_values((2, 5, 7), dtype)], upper=upper)
    check("Trilu", [drawn_values((5, 5), dtype), np.array(-2)], constants=1, upper=upper)


@variants_together
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_element_of_many(axis: int) -> None:
    indices = np.array([[0, 3, -1], [4, 2, -5]])
    check("OneHot", [indices, np.array(5), np.array([-1, 3], np.float32)], constants=2, axis=axis)


NORMS = ["ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp", "ReduceProd"]


@variants_together
@pytest.mark.parametrize("kind", NORMS)
def test_norms_of_floats(kind: str) -> None:
    """Of rows in which one number is not a one, so that every order of terms gives the same."""
    x = np.abs(drawn_values((3, 5, 19), np.float32)) + 1
    model = ModelBuilder()
    found = model.node(kind, model.input("x", x.shape), model.constant(np.array([-1])), keepdims=0)
    content = model.finish(found, dtype=np.float32, version=18)
    assert_floats_within(found_by(content, x)[0], expected(content, {"x": x})[0], "pair")


def test_sums_of_powers_of_infinite_numbers() -> None:
    model = ModelBuilder()
    axes = model.constant(np.array([1]))
    content = model.finish(
        model.node("ReduceLogSumExp", model.input("x", (4, 2)), axes, keepdims=0), dtype=np.float32, version=18
    )
    x = np.array([[-np.inf, -np.inf], [-np.inf, 3], [np.inf, 1], [200, 200]], np.float32)
    assert found_by(content, x)[0].tolist() == [-np.inf, 3, np.inf, np.float32(200 + np.log(2))]
