"""Reductions, rows at run-time indices, data movement and computed shapes of `tosa`."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from together import variants_together
from tosa_checks import check_spec
from tosa_text import TosaText

REDUCTIONS = [
    *product(["reduce_max", "reduce_min"], ["i8", "i16", "i32", "f32"]),
    *product(["reduce_sum"], ["i32", "f32"]),
    ("reduce_product", "f32"),
]


@variants_together
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("name", "element"), REDUCTIONS)
def test_reductions(name: str, element: str, axis: int) -> None:
    text, shape = TosaText(f"tensor<3x11x5x{element}>"), [3, 11, 5]
    shape[axis] = 1
    result = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    check_spec(text.render(text.op(name, ["%x0"], f"axis = {axis} : i32", result)), bits=24)


@variants_together
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
@pytest.mark.parametrize("mode", ["PROPAGATE", "IGNORE"])
def test_extremes_with_nan(name: str, mode: str) -> None:
    text = TosaText("tensor<3x4xf32>")
    x = np.array([[1, np.nan, -3, 2], [np.nan] * 4, [4, 3, 2, 1]], np.float32)
    check_spec(text.render(text.op(name, ["%x0"], f"axis = 1 : i32, nan_mode = {mode}", "tensor<3x1xf32>")), [x])


@variants_together
@pytest.mark.parametrize("name", ["reduce_all", "reduce_any"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_of_booleans(name: str, axis: int) -> None:
    text, x = TosaText("tensor<3x4xi1>"), np.array([[1, 0, 1, 1], [0] * 4, [1] * 4], bool)
    x = np.ascontiguousarray(x if axis else np.resize(x, (3, 4)))
    shape = "tensor<3x1xi1>" if axis else "tensor<1x4xi1>"
    check_spec(text.render(text.op(name, ["%x0"], f"axis = {axis} : i32", shape)), [x])


@variants_together
@pytest.mark.parametrize("element", ["i8", "i16", "f32"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_position_of_the_largest(element: str, axis: int) -> None:
    text = TosaText(f"tensor<7x300x{element}>")
    result = f"tensor<{[300, 7][axis]}xi32>"
    check_spec(text.render(text.op("argmax", ["%x0"], f"axis = {axis} : i32", result)), bits=5)


@variants_together
@pytest.mark.parametrize("mode", ["PROPAGATE", "IGNORE"])
def test_the_position_of_the_largest_with_nan(mode: str) -> None:
    text = TosaText("tensor<4x4xf32>")
    x = np.array([[1, np.nan, 9, np.nan], [np.nan] * 4, [4, 4, -np.inf, 1], [-np.inf] * 4], np.float32)
    check_spec(text.render(text.op("argmax", ["%x0"], f"axis = 1 : i32, nan_mode = {mode}", "tensor<4xi32>")), [x])


@variants_together
@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "f32"])
def test_rows_at_indices(batches: int, element: str) -> None:
    rows = f"tensor<{batches}x6x5x{element}>"
    text = TosaText(rows, f"tensor<{batches}x4xi32>", f"tensor<{batches}x4x5x{element}>")
    found = text.op("gather", ["%x0", "%x1"], "", f"tensor<{batches}x4x5x{element}>")
    written = text.op("scatter", ["%x0", "%x1", "%x2"], "", rows)
    rng = np.random.default_rng(batches)
    dtype = "float32" if element == "f32" else f"int{element[1:]}"
    indices = np.stack([rng.permutation(6)[:4] for _ in range(batches)]).astype(np.int32)
    data, updates = (rng.integers(-100, 100, (batches, n, 5)).astype(dtype) for n in (6, 4))
    check_spec(text.render(found, written), [data, indices, updates])


@variants_together
@pytest.mark.parametrize("element", ["i1", "i16", "i32", "f32"])
def test_data_movement_of_any_type(element: str) -> None:
    image = f"tensor<1x4x5x3x{element}>"
    dtype = {"i1": "bool", "f32": "float32"}.get(element, f"int{element[1:]}")
    text = TosaText(image, image)
    fill = text.constant(1, dtype)
    padded = text.op("pad", ["%x0", text.shape(0, 0, 1, 2, 0, 1, 0, 0), fill], "", f"tensor<1x7x6x3x{element}>")
    flat = text.op("reshape", [padded, text.shape(1, 126)], "", f"tensor<1x126x{element}>")
    moved = text.op("transpose", ["%x0"], "perms = array<i32: 0, 3, 1, 2>", f"tensor<1x3x4x5x{element}>")
    joined = text.op("concat", ["%x0", "%x1", "%x0"], "axis = 2 : i32", f"tensor<1x4x15x3x{element}>")
    cut = text.op("slice", [joined, text.shape(0, 1, 3, 0), text.shape(1, 2, 4, 3)], "", f"tensor<1x2x4x3x{element}>")
    turned = text.op("reverse", ["%x1"], "axis = 1 : i32", image)
    tiled = text.op("tile", ["%x1", text.shape(2, 1, 3, 1)], "", f"tensor<2x4x15x3x{element}>")
    check_spec(text.render(flat, moved, cut, turned, tiled))


@variants_together
@pytest.mark.parametrize("fill", [-0.75, float("-inf"), 2.0**100])
def test_padding_with_any_float(fill: float) -> None:
    text = TosaText("tensor<2x3xf32>")
    operands = ["%x0", text.shape(1, 0, 2, 3), text.constant(fill, "float32")]
    check_spec(text.render(text.op("pad", operands, "", "tensor<3x8xf32>")))


def test_padding_with_a_value_of_run_time() -> None:
    text = TosaText("tensor<2x3xi8>", "tensor<1xi8>")
    check_spec(text.render(text.op("pad", ["%x0", text.shape(1, 0, 2, 0), "%x1"], "", "tensor<3x5xi8>")))


def test_many_tensors_beside_each_other() -> None:
    text = TosaText("tensor<2x3xi8>", "tensor<2x4xi8>")
    check_spec(text.render(text.op("concat", ["%x0", "%x1"] * 20, "axis = 1 : i32", "tensor<2x140xi8>")))


def test_shapes_that_ops_compute() -> None:
    text = TosaText("tensor<2x6xi8>")
    both = text.shape_op("mul_shape", [text.shape_dim("%x0", 0), text.shape(3)], 1)
    wanted = text.shape_op(
        "concat_shape", [text.shape_op("div_floor_shape", [text.shape(7), text.shape(3)], 1), both], 2
    )
    text_of_shape = text.op("reshape", ["%x0", wanted], "", "tensor<2x6xi8>")
    check_spec(text.render(text_of_shape))
