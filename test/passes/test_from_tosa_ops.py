"""`tosa` ops give what the specification's pseudo-code gives."""

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from compiled_ops import tensor, variants_together
from tosa_graphs import TosaText, check_spec, random_values

from qdialect.frontends.tosa import import_tosa

Case = tuple[str, str, dict[str, Any]]
"""A title, the text of a module, and how it is checked."""
Row = tuple[str, Sequence[str], str, str, dict[str, Any]]
"""An op, the types of its operands and of its result, its attributes, and how it is checked."""
_PAIR = [np.array(x, np.float32) for x in ([1, np.nan, -2, np.nan], [np.nan, 2, 5, np.nan])]
_NEAR = [-0.5, 0.5, 1.5, 2.5, -2.5, 126.5, 127.5, 128.0, -128.5, -129.0, 3e4, 4e9, -4e9, 2147483520.0, 2.0**31]
_MODES = ("PROPAGATE", "IGNORE")
_ELEMENTS = ("i8", "i16", "i32")
_DTYPES = {"i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "f32": "float32"}


def _floats() -> Iterator[Row]:
    # The specification leaves the last places open: 1 / (1 + e^-x) is rounded three times here.
    for name in ("ceil", "cos", "erf", "exp", "floor", "reciprocal", "sigmoid", "sin", "tanh", "abs"):
        ulps = {"sigmoid": 3, "erf": 1, "exp": 1, "tanh": 1}.get(name, 0)
        yield name, ["7x33xf32"], "7x33xf32", "", {"ulps": ulps}
    for name in ("log", "rsqrt"):
        x = np.geomspace(1e-30, 1e30, 300).astype(np.float32)
        yield name, ["300xf32"], "300xf32", "", {"inputs": [x], "ulps": 1}
    rng = np.random.default_rng(3)
    powers = [rng.uniform(0.01, 9, (4, 50)).astype(np.float32), rng.normal(size=(1, 50)).astype(np.float32) * 3]
    yield "pow", ["4x50xf32", "1x50xf32"], "4x50xf32", "", {"inputs": powers, "ulps": 1}
    x = np.array([-9, -1.5, 0.25, 7, np.nan], np.float32)
    for mode in _MODES:
        for name in ("maximum", "minimum"):
            yield name, ["4xf32", "4xf32"], "4xf32", f"nan_mode = {mode}", {"inputs": _PAIR}
        bounds = f"min_val = -1.25 : f32, max_val = 6.0 : f32, nan_mode = {mode}"
        yield "clamp", ["5xf32"], "5xf32", bounds, {"inputs": [x]}


def _integers() -> Iterator[Row]:
    for name, element in product(("add", "sub", "maximum", "minimum"), ("f32", "i32")):
        yield name, [f"3x1x5x{element}", f"1x4x5x{element}"], f"3x4x5x{element}", "", {"bits": 30}
    for element in ("i16", "i32"):
        bounds = f"min_val = -1000 : {element}, max_val = 2000 : {element}"
        yield "clamp", [f"300x{element}"], f"300x{element}", bounds, {"bits": 13}
    for element in _ELEMENTS:
        bits = int(element[1:])
        amounts = np.arange(bits).reshape(-1, 1).astype(f"int{bits}")
        x = np.random.default_rng(bits).integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (bits, 9)).astype(f"int{bits}")
        types, result = [f"{bits}x9x{element}", f"{bits}x1x{element}"], f"{bits}x9x{element}"
        for name in ("logical_left_shift", "logical_right_shift"):
            yield name, types, result, "", {"inputs": [x, amounts]}
        for rounds in ("true", "false"):
            yield "arithmetic_right_shift", types, result, f"round = {rounds}", {"inputs": [x, amounts]}
        near = [np.array(_NEAR, np.float32)]
        yield "cast", ["15xf32"], f"15x{element}", "", {"inputs": near}
    pairs = [
        *permutations(("i8", "i16", "i32", "f32"), 2),
        *product(("i1",), ("i8", "i32")),
        ("i8", "i1"),
        ("i32", "i1"),
    ]
    for source, target in pairs:
        yield "cast", [f"500x{source}"], f"500x{target}", "", {}


def _bits() -> Iterator[Row]:
    for name, element in product(("bitwise_and", "bitwise_or", "bitwise_xor"), _ELEMENTS):
        yield name, [f"3x70x{element}", f"1x70x{element}"], f"3x70x{element}", "", {}
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield name, ["3x70xi1", "1x70xi1"], "3x70xi1", "", {}
    for name, element in (*product(["bitwise_not"], _ELEMENTS), ("logical_not", "i1"), ("clz", "i32"), ("abs", "i32")):
        yield name, [f"200x{element}"], f"200x{element}", "", {}
    y = np.random.default_rng(2).integers(1, 900, 200).astype(np.int32) * np.array([1, -1] * 100, np.int32)
    x = np.random.default_rng(3).integers(-(2**31), 2**31, 200).astype(np.int32) >> np.arange(200, dtype=np.int32) % 31
    yield "intdiv", ["200xi32"] * 2, "200xi32", "", {"inputs": [x, y]}


def _reductions() -> Iterator[Row]:
    kinds = [
        *product(["reduce_max", "reduce_min"], ["i8", "i16", "i32", "f32"]),
        *product(["reduce_sum"], ["i32", "f32"]),
    ]
    for (name, element), axis in product([*kinds, ("reduce_product", "f32")], range(3)):
        shape = [3, 11, 5]
        shape[axis] = 1
        result = f"{'x'.join(map(str, shape))}x{element}"
        yield name, [f"3x11x5x{element}"], result, f"axis = {axis} : i32", {"bits": 24}
    x = np.array([[1, np.nan, -3, 2], [np.nan] * 4, [4, 3, 2, 1]], np.float32)
    for name, mode in product(["reduce_max", "reduce_min"], _MODES):
        yield name, ["3x4xf32"], "3x1xf32", f"axis = 1 : i32, nan_mode = {mode}", {"inputs": [x]}
    truths = np.array([[1, 0, 1, 1], [0] * 4, [1] * 4], bool)
    for name, axis in product(["reduce_all", "reduce_any"], range(2)):
        result = "3x1xi1" if axis else "1x4xi1"
        yield name, ["3x4xi1"], result, f"axis = {axis} : i32", {"inputs": [truths]}
    for element, axis in product(["i8", "i16", "f32"], range(2)):
        yield "argmax", [f"7x300x{element}"], f"{[300, 7][axis]}xi32", f"axis = {axis} : i32", {"bits": 5}
    x = np.array([[1, np.nan, 9, np.nan], [np.nan] * 4, [4, 4, -np.inf, 1], [-np.inf] * 4], np.float32)
    for mode in _MODES:
        yield "argmax", ["4x4xf32"], "4xi32", f"axis = 1 : i32, nan_mode = {mode}", {"inputs": [x]}


def _of_one_op() -> Iterator[Case]:
    for name, types, result, attributes, how in (*_floats(), *_integers(), *_bits(), *_reductions()):
        text = TosaText(*(f"tensor<{type_}>" for type_ in types))
        operands = [f"%x{i}" for i in range(len(types))]
        yield name, text.render(text.op(name, operands, attributes, f"tensor<{result}>")), how


def _choices_and_products() -> Iterator[Case]:
    for name, element in product(("equal", "greater", "greater_equal"), ("i32", "f32")):
        text = TosaText(f"tensor<3x70x{element}>", f"tensor<1x70x{element}>")
        holds = text.op(name, ["%x0", "%x1"], "", "tensor<3x70xi1>")
        chosen = text.op("select", [holds, "%x0", "%x1"], "", f"tensor<3x70x{element}>")
        yield name, text.render(holds, chosen), {"bits": 4}
    for element, shift in (*product(("i32",), (0, 1, 17, 31)), ("i8", 0), ("i16", 0), ("f32", 0)):
        text, result = (
            TosaText(f"tensor<3x70x{element}>", f"tensor<1x70x{element}>"),
            "f32" if element == "f32" else "i32",
        )
        both = text.op("mul", ["%x0", "%x1", text.constant(shift, "int8")], "", f"tensor<3x70x{result}>")
        yield "mul", text.render(both), {"bits": 15 + shift // 2} if element == "i32" else {}
    for element in ("i16", "i32", "f32"):
        text = TosaText(f"tensor<300x{element}>")
        operands = ["%x0", *(text.constant(0, _DTYPES[element]) for _ in range(2))]
        yield "negate", text.render(text.op("negate", operands, "", f"tensor<300x{element}>")), {}
    text = TosaText("tensor<65536xi16>")
    entries = np.random.default_rng(3).integers(-(2**14), 2**14, 513)
    table = text.op("table", ["%x0", text.constant(entries, "int16")], "", "tensor<65536xi32>")
    yield "table", text.render(table), {"inputs": [np.arange(-32768, 32768).astype(np.int16)]}


def _movements() -> Iterator[Case]:
    for element, batches in product(("i8", "i16", "i32", "f32"), (1, 3)):
        rows = f"tensor<{batches}x6x5x{element}>"
        text = TosaText(rows, f"tensor<{batches}x4xi32>", f"tensor<{batches}x4x5x{element}>")
        found = text.op("gather", ["%x0", "%x1"], "", f"tensor<{batches}x4x5x{element}>")
        written = text.op("scatter", ["%x0", "%x1", "%x2"], "", rows)
        rng = np.random.default_rng(batches)
        indices = np.stack([rng.permutation(6)[:4] for _ in range(batches)]).astype(np.int32)
        data, updates = (rng.integers(-100, 100, (batches, n, 5)).astype(_DTYPES[element]) for n in (6, 4))
        yield "gather and scatter", text.render(found, written), {"inputs": [data, indices, updates]}
    for element in ("i1", "i16", "i32", "f32"):
        image = f"tensor<1x4x5x3x{element}>"
        text = TosaText(image, image)
        fill, sides = text.constant(1, _DTYPES[element]), text.shape(0, 0, 1, 2, 0, 1, 0, 0)
        padded = text.op("pad", ["%x0", sides, fill], "", f"tensor<1x7x6x3x{element}>")
        flat = text.op("reshape", [padded, text.shape(1, 126)], "", f"tensor<1x126x{element}>")
        moved = text.op("transpose", ["%x0"], "perms = array<i32: 0, 3, 1, 2>", f"tensor<1x3x4x5x{element}>")
        joined = text.op("concat", ["%x0", "%x1", "%x0"], "axis = 2 : i32", f"tensor<1x4x15x3x{element}>")
        where = text.shape(0, 1, 3, 0), text.shape(1, 2, 4, 3)
        cut = text.op("slice", [joined, *where], "", f"tensor<1x2x4x3x{element}>")
        turned = text.op("reverse", ["%x1"], "axis = 1 : i32", image)
        tiled = text.op("tile", ["%x1", text.shape(2, 1, 3, 1)], "", f"tensor<2x4x15x3x{element}>")
        yield "movements", text.render(flat, moved, cut, turned, tiled), {}
    for fill in (-0.75, float("-inf"), 2.0**100):
        text = TosaText("tensor<2x3xf32>")
        operands = ["%x0", text.shape(1, 0, 2, 3), text.constant(fill, "float32")]
        yield f"pad with {fill}", text.render(text.op("pad", operands, "", "tensor<3x8xf32>")), {}
    text = TosaText("tensor<2x3xi8>", "tensor<1xi8>")
    padded = text.op("pad", ["%x0", text.shape(1, 0, 2, 0), "%x1"], "", "tensor<3x5xi8>")
    yield "pad with a value of run time", text.render(padded), {}
    text = TosaText("tensor<2x6xi8>")
    both = text.shape_op("mul_shape", [text.shape_dim("%x0", 0), text.shape(3)], 1)
    quotient = text.shape_op("div_floor_shape", [text.shape(7), text.shape(3)], 1)
    wanted = text.shape_op("concat_shape", [quotient, both], 2)
    yield "computed shapes", text.render(text.op("reshape", ["%x0", wanted], "", "tensor<2x6xi8>")), {}


# Scale, offset and border of height and width, and the extents: up, down, aligned corners, half pixels.
RESIZES = [
    ((2, 1, 2, 1), (0, 0), (0, 0), (4, 5), (7, 9)),
    ((4, 2, 4, 2), (-1, -1), (1, 1), (4, 5), (8, 10)),
    ((1, 2, 1, 3), (0, 0), (0, 0), (7, 10), (4, 4)),
    ((16, 3, 5, 2), (-2, 1), (2, 0), (3, 6), (13, 13)),
    ((1, 1, 1, 1), (0, 0), (0, 0), (3, 3), (3, 3)),
]


def positive(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Sums of floats of different signs have no bound in units of the last place."""
    return np.random.default_rng(1).uniform(0.5, 2, shape).astype(np.float32)


def array(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"


def _images() -> Iterator[Case]:
    for (*where, size, result), mode, element in product(RESIZES, ("NEAREST_NEIGHBOR", "BILINEAR"), ("i8", "f32")):
        text = TosaText(tensor((2, *size, 3), element))
        wide = "i32" if (element, mode) == ("i8", "BILINEAR") else element
        operands = ["%x0", *(text.shape(*one) for one in where)]
        resized = text.op("resize", operands, f"mode = {mode}", tensor((2, *result, 3), wide))
        how = {"inputs": [positive(2, *size, 3)], "ulps": 4} if element == "f32" else {}
        yield f"resize {mode}", text.render(resized), how
    for pad, element in product([(0, 0, 0, 0), (1, 1, 0, 1)], ("i8", "i16", "f32")):
        window = f"kernel = array<i64: 3, 2>, stride = array<i64: 2, 1>, pad = {array(pad)}"
        shape = (2, (7 + sum(pad[:2]) - 3) // 2 + 1, 5 + sum(pad[2:]) - 2 + 1, 3)
        for mode in _MODES if element != "i8" else ():
            text = TosaText(f"tensor<2x7x5x3x{element}>")
            pool = text.op("max_pool2d", ["%x0"], f"{window}, nan_mode = {mode}", tensor(shape, element))
            yield "max_pool2d", text.render(pool), {}
        text = TosaText(f"tensor<2x7x5x3x{element}>")
        points = (-3, 20) if element == "i8" else (0, 0)
        operands = ["%x0", *(text.constant(point, _DTYPES[element]) for point in points)]
        accumulator = "f32" if element == "f32" else "i32"
        pool = text.op("avg_pool2d", operands, f"acc_type = {accumulator}, {window}", tensor(shape, element))
        how = {"inputs": [positive(2, 7, 5, 3)], "ulps": 4} if element == "f32" else {}
        yield "avg_pool2d", text.render(pool), how
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    x[0, :2, :2] = x[0, 3, 2] = np.nan
    for mode in _MODES:
        text = TosaText("tensor<1x4x4x1xf32>")
        window = "kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>"
        pool = text.op("max_pool2d", ["%x0"], f"{window}, nan_mode = {mode}", "tensor<1x2x2x1xf32>")
        yield "max_pool2d with nan", text.render(pool), {"inputs": [x]}


DENSE = "stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>"


def whole(*shape: int, seed: int = 7) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Whole numbers, of which sums are exact in any order."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def _contractions() -> Iterator[Case]:
    strided = "pad = array<i64: 1, 0, 1, 1>, stride = array<i64: 2, 1>, dilation = array<i64: 1, 2>"
    same = f"pad = array<i64: 1, 1, 1, 1>, {DENSE}"
    convolutions = [
        ("conv2d", (2, 6, 7, 3), (5, 3, 2, 3), 5, strided, (2, 3, 7, 5)),
        ("depthwise_conv2d", (1, 5, 5, 6), (3, 3, 6, 1), 1, same, (1, 5, 5, 6)),
        ("depthwise_conv2d", (1, 5, 5, 6), (3, 3, 6, 2), 1, same, (1, 5, 5, 12)),
    ]
    for name, data, weight, bias, window, shape in convolutions:
        text = TosaText(tensor(data, "f32"))
        parts = [text.constant(one, "float32") for one in (whole(*weight), whole(bias), 0, 0)]
        sums = text.op(name, ["%x0", *parts], f"{window}, acc_type = f32", tensor(shape, "f32"))
        yield name, text.render(sums), {"inputs": [whole(*data)]}
    for element, out_pad in product(("i8", "f32"), [(0, 0, 0, 0), (-1, -1, 0, -1), (2, 1, 1, 3), (3, -2, -2, 0)]):
        text, is_float = TosaText(f"tensor<1x4x3x2x{element}>"), element == "f32"
        wide, points = ("f32", (0, 0)) if is_float else ("i32", (-9, 4))
        shape = (1, 3 * 2 + 3 + sum(out_pad[:2]), 2 * 3 + 3 + sum(out_pad[2:]), 3)
        operands = ["%x0", text.constant(random_values((3, 3, 3, 2)) // 9, _DTYPES[element])]
        operands += [text.constant([1, 2, 3], _DTYPES[wide])]
        operands += [text.constant(point, _DTYPES[element]) for point in points]
        window = f"out_pad = {array(out_pad)}, stride = array<i64: 2, 3>, acc_type = {wide}"
        sums = text.op("transpose_conv2d", operands, window, tensor(shape, wide))
        yield "transpose_conv2d", text.render(sums), {"inputs": [whole(1, 4, 3, 2)]} if is_float else {}
    for name, batches, element, is_known in product(("matmul", "matmul_t"), (1, 3), ("i8", "f32"), (False, True)):
        shape, is_float = (batches, 4, 7) if name == "matmul_t" else (batches, 7, 4), element == "f32"
        text = TosaText(tensor((batches, 5, 7), element), *([] if is_known else [tensor(shape, element)]))
        other = text.constant(random_values(shape) // 9, _DTYPES[element]) if is_known else "%x1"
        points = [text.constant(point, _DTYPES[element]) for point in ((0, 0) if is_float else (5, -3))]
        result = tensor((batches, 5, 4), "f32" if is_float else "i32")
        given = [whole(batches, 5, 7), *([] if is_known else [whole(*shape)])]
        sums = text.op(name, ["%x0", other, *points], "", result)
        yield name, text.render(sums), {"inputs": given} if is_float else {}
    text = TosaText("tensor<1x4x4x3xi8>", "tensor<5xi32>")
    operands = ["%x0", text.constant(random_values((5, 3, 3, 3)), "int8"), "%x1"]
    operands += [text.constant(point, "int8") for point in (-9, 0)]
    sums = text.op("conv2d", operands, f"{same}, acc_type = i32", "tensor<1x4x4x5xi32>")
    yield "conv2d with a bias of run time", text.render(sums), {"bits": 20}


CASES = [*_of_one_op(), *_choices_and_products(), *_movements(), *_images(), *_contractions()]


@variants_together
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: f"{CASES[number][0]}-{number}")
def test_ops(number: int) -> None:
    _, text, how = CASES[number]
    check_spec(text, **how)


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
