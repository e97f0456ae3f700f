"""Resized images, pools and contractions of `tosa` give what the specification's pseudo-code gives."""

from __future__ import annotations

import numpy as np
import pytest
from together import variants_together
from tosa_checks import check_spec
from tosa_networks import random_values
from tosa_text import TosaText

from qdialect.frontends.tosa import import_tosa

DENSE = "stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>"
# Scale, offset and border of height and width, and the extents: up, down, aligned corners, half pixels.
RESIZES = [
    ((2, 1, 2, 1), (0, 0), (0, 0), (4, 5), (7, 9)),
    ((4, 2, 4, 2), (-1, -1), (1, 1), (4, 5), (8, 10)),
    ((1, 2, 1, 3), (0, 0), (0, 0), (7, 10), (4, 4)),
    ((16, 3, 5, 2), (-2, 1), (2, 0), (3, 6), (13, 13)),
    ((1, 1, 1, 1), (0, 0), (0, 0), (3, 3), (3, 3)),
]


@variants_together
@pytest.mark.parametrize(("scale", "offset", "border", "size", "result"), RESIZES)
@pytest.mark.parametrize("mode", ["NEAREST_NEIGHBOR", "BILINEAR"])
@pytest.mark.parametrize("element", ["i8", "f32"])
def test_resized_images(
    scale: tuple[int, ...],
    offset: tuple[int, ...],
    border: tuple[int, ...],
    size: tuple[int, int],
    result: tuple[int, int],
    mode: str,
    element: str,
) -> None:
    text = TosaText(f"tensor<2x{size[0]}x{size[1]}x3x{element}>")
    wide = "i32" if (element, mode) == ("i8", "BILINEAR") else element
    operands = ["%x0", text.shape(*scale), text.shape(*offset), text.shape(*border)]
    resized = text.op("resize", operands, f"mode = {mode}", f"tensor<2x{result[0]}x{result[1]}x3x{wide}>")
    # Sums of floats of different signs have no bound in units of the last place.
    x = np.random.default_rng(1).uniform(0.5, 2, (2, *size, 3)).astype(np.float32) if element == "f32" else None
    check_spec(text.render(resized), None if x is None else [x], ulps=4)


def test_an_interpolated_image_is_rescaled() -> None:
    text = TosaText("tensor<1x4x5x3xi8>")
    operands = ["%x0", text.shape(4, 2, 4, 2), text.shape(-1, -1), text.shape(1, 1)]
    wide = text.op("resize", operands, "mode = BILINEAR", "tensor<1x8x10x3xi32>")
    check_spec(text.render(text.rescale(wide, "tensor<1x8x10x3xi8>", [(2**30, 34)])))


@variants_together
@pytest.mark.parametrize("element", ["i16", "f32"])
@pytest.mark.parametrize("mode", ["PROPAGATE", "IGNORE"])
@pytest.mark.parametrize("pad", [(0, 0, 0, 0), (1, 1, 0, 1)])
def test_maxima_of_windows(element: str, mode: str, pad: tuple[int, ...]) -> None:
    text = TosaText(f"tensor<2x7x5x3x{element}>")
    window = f"kernel = array<i64: 3, 2>, stride = array<i64: 2, 1>, pad = array<i64: {', '.join(map(str, pad))}>"
    height, width = (7 + sum(pad[:2]) - 3) // 2 + 1, 5 + sum(pad[2:]) - 2 + 1
    pool = text.op("max_pool2d", ["%x0"], f"{window}, nan_mode = {mode}", f"tensor<2x{height}x{width}x3x{element}>")
    check_spec(text.render(pool))


@variants_together
@pytest.mark.parametrize("mode", ["PROPAGATE", "IGNORE"])
def test_maxima_of_windows_with_nan(mode: str) -> None:
    text, x = TosaText("tensor<1x4x4x1xf32>"), np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    x[0, :2, :2] = np.nan
    x[0, 3, 2] = np.nan
    window = "kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>"
    pool = text.op("max_pool2d", ["%x0"], f"{window}, nan_mode = {mode}", "tensor<1x2x2x1xf32>")
    check_spec(text.render(pool), [x])


@variants_together
@pytest.mark.parametrize("pad", [(0, 0, 0, 0), (1, 1, 0, 1)])
@pytest.mark.parametrize(("element", "points"), [("i8", (-3, 20)), ("i16", (0, 0)), ("f32", (0, 0))])
def test_means_of_windows(element: str, points: tuple[int, int], pad: tuple[int, ...]) -> None:
    dtype = {"i8": "int8", "i16": "int16", "f32": "float32"}[element]
    text = TosaText(f"tensor<2x7x5x3x{element}>")
    window = f"kernel = array<i64: 3, 2>, stride = array<i64: 2, 1>, pad = array<i64: {', '.join(map(str, pad))}>"
    height, width = (7 + sum(pad[:2]) - 3) // 2 + 1, 5 + sum(pad[2:]) - 2 + 1
    operands = ["%x0", *(text.constant(point, dtype) for point in points)]
    accumulator = "f32" if element == "f32" else "i32"
    result = f"tensor<2x{height}x{width}x3x{element}>"
    x = np.random.default_rng(1).uniform(0.5, 2, (2, 7, 5, 3)).astype(np.float32) if element == "f32" else None
    pool = text.op("avg_pool2d", operands, f"acc_type = {accumulator}, {window}", result)
    check_spec(text.render(pool), None if x is None else [x], ulps=4)


def pools(window: str, suffix: str) -> str:
    text = TosaText("tensor<1x6x6x2xi8>")
    points = [text.constant(-4, "int8")] * 2
    lengths = [] if window else [text.shape(3, 2), text.shape(3, 2), text.shape(0, 0, 0, 0)]
    result, attributes = "tensor<1x2x3x2xi8>", [window] if window else []
    mean = text.op(
        f"avg_pool2d{suffix}", ["%x0", *points, *lengths], ", ".join(["acc_type = i32", *attributes]), result
    )
    return text.render(mean, text.op(f"max_pool2d{suffix}", ["%x0", *lengths], window, result))


def test_pools_whose_window_is_made_of_operands() -> None:
    window = "kernel = array<i64: 3, 2>, stride = array<i64: 3, 2>, pad = array<i64: 0, 0, 0, 0>"
    assert str(import_tosa(pools("", "_adaptive"))) == str(check_spec(pools(window, "")))


def floats(text: TosaText, *shape: int) -> str:
    # Whole numbers, of which sums are exact in any order.
    return text.constant(np.random.default_rng(sum(shape)).integers(-8, 9, shape), "float32")


def whole(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(7).integers(-8, 9, shape).astype(np.float32)


def test_convolution_of_floats() -> None:
    text = TosaText("tensor<2x6x7x3xf32>")
    operands = ["%x0", floats(text, 5, 3, 2, 3), floats(text, 5), *[text.constant(0, "float32")] * 2]
    window = "pad = array<i64: 1, 0, 1, 1>, stride = array<i64: 2, 1>, dilation = array<i64: 1, 2>, acc_type = f32"
    check_spec(text.render(text.op("conv2d", operands, window, "tensor<2x3x7x5xf32>")), [whole(2, 6, 7, 3)])


@variants_together
@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise_convolution_of_floats(multiplier: int) -> None:
    text = TosaText("tensor<1x5x5x6xf32>")
    operands = ["%x0", floats(text, 3, 3, 6, multiplier), floats(text, 1), *[text.constant(0, "float32")] * 2]
    window = f"pad = array<i64: 1, 1, 1, 1>, {DENSE}, acc_type = f32"
    result = f"tensor<1x5x5x{6 * multiplier}xf32>"
    check_spec(text.render(text.op("depthwise_conv2d", operands, window, result)), [whole(1, 5, 5, 6)])


OUT_PADS = [(0, 0, 0, 0), (-1, -1, 0, -1), (2, 1, 1, 3), (3, -2, -2, 0)]


@variants_together
@pytest.mark.parametrize("out_pad", OUT_PADS)
@pytest.mark.parametrize("element", ["i8", "f32"])
def test_transposed_convolution(out_pad: tuple[int, ...], element: str) -> None:
    text, is_float = TosaText(f"tensor<1x4x3x2x{element}>"), element == "f32"
    height, width = 3 * 2 + 3 + sum(out_pad[:2]), 2 * 3 + 3 + sum(out_pad[2:])
    dtype, wide = ("float32", "f32") if is_float else ("int8", "i32")
    operands = ["%x0", text.constant(random_values((3, 3, 3, 2)) // 9, dtype)]
    operands += [text.constant([1, 2, 3], "float32" if is_float else "int32")]
    operands += [text.constant(point, dtype) for point in ((0, 0) if is_float else (-9, 4))]
    window = f"out_pad = array<i64: {', '.join(map(str, out_pad))}>, stride = array<i64: 2, 3>, acc_type = {wide}"
    result = text.op("transpose_conv2d", operands, window, f"tensor<1x{height}x{width}x3x{wide}>")
    check_spec(text.render(result), [whole(1, 4, 3, 2)] if is_float else None)


@variants_together
@pytest.mark.parametrize("name", ["matmul", "matmul_t"])
@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize("element", ["i8", "f32"])
@pytest.mark.parametrize("constant", [False, True])
def test_products_of_matrices(name: str, batches: int, element: str, constant: bool) -> None:
    shape, is_float = (batches, 4, 7) if name == "matmul_t" else (batches, 7, 4), element == "f32"
    right = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    text = TosaText(f"tensor<{batches}x5x7x{element}>", *([] if constant else [right]))
    dtype = "float32" if is_float else "int8"
    other = text.constant(random_values(shape) // 9, dtype) if constant else "%x1"
    points = [text.constant(point, dtype) for point in ((0, 0) if is_float else (5, -3))]
    sums = text.op(name, ["%x0", other, *points], "", f"tensor<{batches}x5x4x{'f32' if is_float else 'i32'}>")
    given = [whole(batches, 5, 7), *([] if constant else [whole(*shape)])]
    check_spec(text.render(sums), given if is_float else None)


def test_a_bias_of_run_time() -> None:
    text = TosaText("tensor<1x4x4x3xi8>", "tensor<5xi32>")
    operands = ["%x0", text.constant(random_values((5, 3, 3, 3)), "int8"), "%x1"]
    operands += [text.constant(point, "int8") for point in (-9, 0)]
    window = f"pad = array<i64: 1, 1, 1, 1>, {DENSE}, acc_type = i32"
    check_spec(text.render(text.op("conv2d", operands, window, "tensor<1x4x4x5xi32>")), bits=20)
