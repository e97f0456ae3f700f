"""`tosa` ops give what the specification's pseudo-code gives."""

from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from compiled_ops import variants_together
from tosa_graphs import TosaText, check_spec, random_values

from qdialect.frontends.tosa import import_tosa

_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
Row = tuple[str, tuple[str, ...], str, str, dict[str, Any]]
"""An op, the types of its operands and of its result, its attributes, and how it is checked."""
_PAIR = [np.array(x, np.float32) for x in ([1, np.nan, -2, np.nan], [np.nan, 2, 5, np.nan])]
_NEAR = [-0.5, 0.5, 1.5, 2.5, -2.5, 126.5, 127.5, 128.0, -128.5, -129.0, 3e4, 4e9, -4e9, 2147483520.0, 2.0**31]
_MODES = ("PROPAGATE", "IGNORE")
_ELEMENTS = ("i8", "i16", "i32")


def _floats() -> Iterator[Row]:
    # The specification leaves the last places open: 1 / (1 + e^-x) is rounded three times here.
    for name in ("ceil", "cos", "erf", "exp", "floor", "reciprocal", "sigmoid", "sin", "tanh", "abs"):
        ulps = {"sigmoid": 3, "erf": 1, "exp": 1, "tanh": 1}.get(name, 0)
        yield name, ("7x33xf32",), "7x33xf32", "", {"ulps": ulps}
    for name in ("log", "rsqrt"):
        x = np.geomspace(1e-30, 1e30, 300).astype(np.float32)
        yield name, ("300xf32",), "300xf32", "", {"inputs": [x], "ulps": 1}
    rng = np.random.default_rng(3)
    powers = [rng.uniform(0.01, 9, (4, 50)).astype(np.float32), rng.normal(size=(1, 50)).astype(np.float32) * 3]
    yield "pow", ("4x50xf32", "1x50xf32"), "4x50xf32", "", {"inputs": powers, "ulps": 1}
    x = np.array([-9, -1.5, 0.25, 7, np.nan], np.float32)
    for mode in _MODES:
        for name in ("maximum", "minimum"):
            yield name, ("4xf32", "4xf32"), "4xf32", f"nan_mode = {mode}", {"inputs": _PAIR}
        bounds = f"min_val = -1.25 : f32, max_val = 6.0 : f32, nan_mode = {mode}"
        yield "clamp", ("5xf32",), "5xf32", bounds, {"inputs": [x]}


def _integers() -> Iterator[Row]:
    for name, element in product(("add", "sub", "maximum", "minimum"), ("f32", "i32")):
        yield name, (f"3x1x5x{element}", f"1x4x5x{element}"), f"3x4x5x{element}", "", {"bits": 30}
    for element in ("i16", "i32"):
        bounds = f"min_val = -1000 : {element}, max_val = 2000 : {element}"
        yield "clamp", (f"300x{element}",), f"300x{element}", bounds, {"bits": 13}
    for element in _ELEMENTS:
        bits = int(element[1:])
        amounts = np.arange(bits).reshape(-1, 1).astype(f"int{bits}")
        x = np.random.default_rng(bits).integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (bits, 9)).astype(f"int{bits}")
        types, result = (f"{bits}x9x{element}", f"{bits}x1x{element}"), f"{bits}x9x{element}"
        for name in ("logical_left_shift", "logical_right_shift"):
            yield name, types, result, "", {"inputs": [x, amounts]}
        for rounds in ("true", "false"):
            yield "arithmetic_right_shift", types, result, f"round = {rounds}", {"inputs": [x, amounts]}
        near = [np.array(_NEAR, np.float32)]
        yield "cast", ("15xf32",), f"15x{element}", "", {"inputs": near}
    pairs = [
        *permutations(("i8", "i16", "i32", "f32"), 2),
        *product(("i1",), ("i8", "i32")),
        ("i8", "i1"),
        ("i32", "i1"),
    ]
    for source, target in pairs:
        yield "cast", (f"500x{source}",), f"500x{target}", "", {}


ROWS = [*_floats(), *_integers()]


@variants_together
@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda number: f"{ROWS[number][0]}-{number}")
def test_elementwise_ops(number: int) -> None:
    name, types, result, attributes, how = ROWS[number]
    text = TosaText(*(f"tensor<{type_}>" for type_ in types))
    given = dict(how)
    inputs = given.pop("inputs", None)
    operands = [f"%x{i}" for i in range(len(types))]
    check_spec(text.render(text.op(name, operands, attributes, f"tensor<{result}>")), inputs, **given)


@variants_together
@pytest.mark.parametrize("element", ["i8", "i16", "i32"])
@pytest.mark.parametrize("name", _BITS)
def test_bits(name: str, element: str) -> None:
    text = TosaText(f"tensor<3x70x{element}>", f"tensor<1x70x{element}>")
    both = text.op(name, ["%x0", "%x1"], "", f"tensor<3x70x{element}>")
    check_spec(text.render(text.op("bitwise_not", [both], "", f"tensor<3x70x{element}>")))


@variants_together
@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_booleans(name: str) -> None:
    text = TosaText("tensor<3x70xi1>", "tensor<1x70xi1>")
    both = text.op(name, ["%x0", "%x1"], "", "tensor<3x70xi1>")
    check_spec(text.render(both, text.op("logical_not", [both], "", "tensor<3x70xi1>")))


@variants_together
@pytest.mark.parametrize("name", ["equal", "greater", "greater_equal"])
@pytest.mark.parametrize("element", ["i32", "f32"])
def test_comparisons_choose(name: str, element: str) -> None:
    text = TosaText(f"tensor<3x70x{element}>", f"tensor<1x70x{element}>")
    holds = text.op(name, ["%x0", "%x1"], "", "tensor<3x70xi1>")
    chosen = text.op("select", [holds, "%x0", "%x1"], "", f"tensor<3x70x{element}>")
    check_spec(text.render(holds, chosen), bits=4)


def test_leading_zeros_magnitudes_and_quotients() -> None:
    text = TosaText("tensor<200xi32>", "tensor<200xi32>")
    results = [text.op(name, ["%x0"], "", "tensor<200xi32>") for name in ("clz", "abs")]
    y = np.random.default_rng(2).integers(1, 900, 200).astype(np.int32) * np.array([1, -1] * 100, np.int32)
    x = np.random.default_rng(3).integers(-(2**31), 2**31, 200).astype(np.int32) >> np.arange(200, dtype=np.int32) % 31
    check_spec(text.render(*results, text.op("intdiv", ["%x0", "%x1"], "", "tensor<200xi32>")), [x, y])


@variants_together
@pytest.mark.parametrize("shift", [0, 1, 17, 31])
def test_products_with_a_shift(shift: int) -> None:
    text = TosaText("tensor<3x70xi32>", "tensor<1x70xi32>")
    product = text.op("mul", ["%x0", "%x1", text.constant(shift, "int8")], "", "tensor<3x70xi32>")
    check_spec(text.render(product), bits=15 + shift // 2)


@variants_together
@pytest.mark.parametrize("element", ["i8", "i16", "f32"])
def test_products_of_narrow_integers_and_of_floats(element: str) -> None:
    text, result = TosaText(f"tensor<3x70x{element}>", f"tensor<3x1x{element}>"), "f32" if element == "f32" else "i32"
    product = text.op("mul", ["%x0", "%x1", text.constant(0, "int8")], "", f"tensor<3x70x{result}>")
    check_spec(text.render(product))


@variants_together
@pytest.mark.parametrize(("element", "points"), [("i16", (0, 0)), ("i32", (0, 0)), ("f32", (0, 0))])
def test_negation(element: str, points: tuple[int, int]) -> None:
    dtype = {"i16": "int16", "i32": "int32", "f32": "float32"}[element]
    text = TosaText(f"tensor<300x{element}>")
    operands = ["%x0", *(text.constant(point, dtype) for point in points)]
    check_spec(text.render(text.op("negate", operands, "", f"tensor<300x{element}>")))


def test_tables_of_16_bits_are_interpolated() -> None:
    text = TosaText("tensor<65536xi16>")
    entries = np.random.default_rng(3).integers(-(2**14), 2**14, 513)
    table = text.op("table", ["%x0", text.constant(entries, "int16")], "", "tensor<65536xi32>")
    check_spec(text.render(table), [np.arange(-32768, 32768).astype(np.int16)])


# Reductions, rows at run-time indices, data movement and computed shapes of `tosa`.

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


def test_shapes_that_ops_compute() -> None:
    text = TosaText("tensor<2x6xi8>")
    both = text.shape_op("mul_shape", [text.shape_dim("%x0", 0), text.shape(3)], 1)
    wanted = text.shape_op(
        "concat_shape", [text.shape_op("div_floor_shape", [text.shape(7), text.shape(3)], 1), both], 2
    )
    text_of_shape = text.op("reshape", ["%x0", wanted], "", "tensor<2x6xi8>")
    check_spec(text.render(text_of_shape))


# Resized images, pools and contractions of `tosa` give what the specification's pseudo-code gives.

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
