"""Elements at positions that are known at run time, running sums and orders: as the package's reference has them."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_evaluated import TYPES, WIDE, check, drawn, found_by, refused
from onnx_graphs import ModelBuilder
from together import variants_together

from qdialect.frontends.onnx import import_onnx

Array = NDArray[Any]


GATHERS: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
    ((7, 5), (2, 3), 0),
    ((7, 5), (4,), -1),
    ((3, 7, 5), (2, 3), 1),
    ((3, 7, 5), (), 2),
    ((9,), (3,), 0),
]


@variants_together
@pytest.mark.parametrize(("shape", "indices", "axis"), GATHERS)
@pytest.mark.parametrize("dtype", TYPES)
def test_gathers_at_run_time(shape: tuple[int, ...], indices: tuple[int, ...], axis: int, dtype: Any) -> None:
    extent = shape[axis]
    for wide in WIDE:
        where = np.random.default_rng(3).integers(-extent, extent, indices).astype(wide)
        check("Gather", [drawn(shape, dtype), where], axis=axis)


def test_an_index_outside_names_the_nearest_element() -> None:
    model = ModelBuilder()
    rows = model.constant(np.arange(12, dtype=np.float32).reshape(4, 3))
    taken = model.node("Gather", rows, model.input("i", (6,), np.int64))
    (found,) = found_by(model.finish(taken, dtype=np.float32), np.array([4, 2**40, -5, -(2**40), -1, 3]))
    np.testing.assert_array_equal(found[:, 0], [9, 9, 0, 0, 9, 9])


@variants_together
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
def test_scatters(dtype: Any) -> None:
    x = drawn((5, 3, 7), dtype)
    check("ScatterND", [x, np.array([[1], [4], [0]]), drawn((3, 3, 7), dtype, 1)])
    check("ScatterND", [x, np.array([[[1, 2], [4, 0]]]), drawn((1, 2, 7), dtype, 1)])
    indices = np.random.default_rng(0).permuted(np.tile(np.arange(3), (2, 7, 1)), axis=-1).transpose(0, 2, 1)
    check("ScatterElements", [x, np.ascontiguousarray(indices), drawn((2, 3, 7), dtype, 1)], axis=1)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
@pytest.mark.parametrize("reduction", ["add", "mul", "min", "max"])
def test_scatters_reduce(dtype: Any, reduction: str) -> None:
    x = drawn((5, 3, 7), dtype)
    rows = np.random.default_rng(0).integers(0, 5, (6, 1))
    check("ScatterND", [x, rows, drawn((6, 3, 7), dtype, 1)], reduction=reduction)
    indices = np.random.default_rng(1).integers(-3, 3, (2, 9, 7))
    check("ScatterElements", [x, indices, drawn((2, 9, 7), dtype, 1)], axis=1, reduction=reduction)


@variants_together
@pytest.mark.parametrize("dtype", [*WIDE, np.float32])
def test_running_sums(dtype: Any) -> None:
    for axis in (0, -1, 1):
        for exclusive, reverse in [(0, 0), (1, 0), (0, 1), (1, 1)]:
            how = {"exclusive": exclusive, "reverse": reverse}
            check("CumSum", [drawn((3, 5, 19), dtype), np.array(axis)], constants=1, **how)


@variants_together
@pytest.mark.parametrize("dtype", [*WIDE, np.float32, np.uint8])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("largest", [0, 1])
def test_the_first_few(dtype: Any, axis: int, largest: int) -> None:
    for shape in [(7, 19), (5, 3, 11)]:
        x = drawn(shape, dtype)
        values, indices = check_top_k(x, min(4, shape[axis]), axis, largest)
        np.testing.assert_array_equal(np.take_along_axis(x, indices, axis), values)


def check_top_k(x: Array, count: int, axis: int, largest: int) -> tuple[Array, Array]:
    """Of equal numbers the first comes first."""
    model = ModelBuilder()
    names = model.input("x", x.shape, x.dtype.type), model.constant(np.array([count]))
    model.node_of_many("TopK", names, ["v", "i"], axis=axis, largest=largest)
    values, indices = found_by(model.finish("v", "i", dtype=np.float32), x)
    keys = x.astype(np.float64)
    order = np.argsort(-keys if largest else keys, axis=axis, kind="stable")
    np.testing.assert_array_equal(indices, np.take(order, np.arange(count), axis=axis), strict=True)
    return values, indices


@variants_together
@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", [*WIDE, np.float32])
def test_indices_of_extremes(kind: str, dtype: Any) -> None:
    for axis, keepdims, last in [(0, 0, 0), (-1, 1, 0), (1, 0, 1), (2, 1, 1)]:
        x = drawn((3, 5, 19), dtype)
        check(kind, [x], axis=axis, keepdims=keepdims, select_last_index=last)


def test_zeros_of_both_signs_are_equal() -> None:
    check("ArgMax", [np.array([[-0.0, 0.0, -1.0]], np.float32)], axis=1)


def test_rows_of_a_quantized_table_stay_quantized() -> None:
    model, ids = ModelBuilder(), np.array([[3, 9, 0], [-1, 5, 5]])
    values = np.random.default_rng(0).integers(-128, 128, (10, 33)).astype(np.int8)
    rows = model.node("Gather", model.weight(values, 0.1), model.input("ids", ids.shape, np.int64))
    content = model.finish(model.quantize(rows, (0.1, 0), np.int8), dtype=np.int8)
    assert "f32" not in str(import_onnx(content)).replace("qnn.name", "")
    np.testing.assert_array_equal(found_by(content, ids)[0], values[ids])


def test_rows_of_a_table_with_a_scale_for_each() -> None:
    model, ids = ModelBuilder(), np.array([[3, 9, 0], [-1, 5, 5]])
    values = np.random.default_rng(0).integers(-128, 128, (10, 33)).astype(np.int8)
    scales = [float(2.0**-i) for i in range(10)]
    rows = model.node("Gather", model.weight(values, scales), model.input("ids", ids.shape, np.int64))
    wanted = values.astype(np.float32) * np.array(scales, np.float32)[:, np.newaxis]
    np.testing.assert_array_equal(found_by(model.finish(rows, dtype=np.float32), ids)[0], wanted[ids])


REFUSED: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("TopK", [np.array([0])], {}, "k must be in [1, 5], but got 0"),
    ("TopK", [np.array([2**40])], {}, "k must be in [1, 5], but got"),
    ("TopK", [np.array([1, 2])], {}, "k must have 1 entry, but got 2"),
    ("CumSum", [np.array(2)], {}, "axes must be in [-2, 2), but got [2]"),
    ("CumSum", [np.array([0, 1])], {}, "axis must have 1 entry, but got 2"),
    ("GatherElements", [np.zeros((3, 6), np.int64)], {}, "indices must lie in a tensor of shape [3, 5]"),
    ("GatherElements", [np.zeros(3, np.int64)], {}, "indices must lie in a tensor of shape [3, 5]"),
    ("GatherND", [np.zeros((2, 3), np.int64)], {}, "indices must name 1 to 2 dimensions, but name 3"),
    (
        "GatherND",
        [np.zeros((2, 1), np.int64)],
        {"batch_dims": 1},
        "batch_dims must be dimensions that data and indices",
    ),
    ("GatherND", [np.array(0)], {}, "batch_dims must be dimensions that data and indices"),
    ("ScatterND", [np.zeros((2, 1), np.int64), np.zeros((2, 4), np.int64)], {}, "updates must have the shape [2, 5]"),
    (
        "ScatterElements",
        [np.zeros((1, 5), np.int64), np.zeros((1, 5), np.int64)],
        {"reduction": "mean"},
        "reduction must be none or add or mul or min or max, but got mean",
    ),
    ("Trilu", [np.array([1, 2])], {}, "k must have 1 entry, but got 2"),
    ("OneHot", [np.array(2**62), np.zeros(2, np.float32)], {}, "depth must be in [1, 2147483647]"),
    ("OneHot", [np.array(np.nan, np.float32), np.zeros(2, np.float32)], {}, "depth must be in [1, 2147483647]"),
    ("Equal", [np.zeros((3, 5), np.int32)], {}, "inputs must be of one type, but got i32 and i64"),
    ("And", [np.zeros((3, 5), np.int64)], {}, "inputs must be i1, but got i64"),
    ("IsNaN", [], {}, "inputs must be f32, but got i64"),
]


@pytest.mark.parametrize(("kind", "operands", "attributes", "reason"), REFUSED)
def test_what_an_operator_cannot_do_is_refused(
    kind: str, operands: list[Any], attributes: dict[str, Any], reason: str
) -> None:
    model = ModelBuilder()
    names = [model.input("x", (3, 5), np.int64), *(model.constant(array) for array in operands)]
    assert reason in refused(model.finish(model.node(kind, *names, **attributes), version=18))
