"""Element-wise `tosa` ops, casts and shifts give what the specification's pseudo-code gives."""

from __future__ import annotations

import numpy as np
import pytest
from together import variants_together
from tosa_checks import check_spec
from tosa_text import TosaText

_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
_UNARY_FLOATS = ("ceil", "cos", "erf", "exp", "floor", "reciprocal", "sigmoid", "sin", "tanh", "abs")


@variants_together
@pytest.mark.parametrize("name", _UNARY_FLOATS)
def test_functions_of_floats(name: str) -> None:
    text = TosaText("tensor<7x33xf32>")
    # The specification leaves the last places open: 1 / (1 + e^-x) is rounded three times here.
    ulps = {"sigmoid": 3, "erf": 1, "exp": 1, "tanh": 1}.get(name, 0)
    check_spec(text.render(text.op(name, ["%x0"], "", "tensor<7x33xf32>")), ulps=ulps)


@variants_together
@pytest.mark.parametrize("name", ["log", "rsqrt"])
def test_functions_of_positive_floats(name: str) -> None:
    text, x = TosaText("tensor<300xf32>"), np.geomspace(1e-30, 1e30, 300).astype(np.float32)
    check_spec(text.render(text.op(name, ["%x0"], "", "tensor<300xf32>")), [x], ulps=1)


def test_powers() -> None:
    text = TosaText("tensor<4x50xf32>", "tensor<1x50xf32>")
    rng = np.random.default_rng(3)
    x, y = rng.uniform(0.01, 9, (4, 50)).astype(np.float32), rng.normal(size=(1, 50)).astype(np.float32) * 3
    check_spec(text.render(text.op("pow", ["%x0", "%x1"], "", "tensor<4x50xf32>")), [x, y], ulps=1)


@variants_together
@pytest.mark.parametrize("name", ["add", "sub", "maximum", "minimum"])
@pytest.mark.parametrize("element", ["f32", "i32"])
def test_functions_of_two(name: str, element: str) -> None:
    text = TosaText(f"tensor<3x1x5x{element}>", f"tensor<1x4x5x{element}>")
    check_spec(text.render(text.op(name, ["%x0", "%x1"], "", f"tensor<3x4x5x{element}>")), bits=30)


@variants_together
@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("mode", ["PROPAGATE", "IGNORE"])
def test_extremes_of_nan(name: str, mode: str) -> None:
    text = TosaText("tensor<4xf32>", "tensor<4xf32>")
    pair = [np.array(x, np.float32) for x in ([1, np.nan, -2, np.nan], [np.nan, 2, 5, np.nan])]
    check_spec(text.render(text.op(name, ["%x0", "%x1"], f"nan_mode = {mode}", "tensor<4xf32>")), pair)


@variants_together
@pytest.mark.parametrize("mode", ["PROPAGATE", "IGNORE"])
def test_clamped_floats(mode: str) -> None:
    text, x = TosaText("tensor<5xf32>"), np.array([-9, -1.5, 0.25, 7, np.nan], np.float32)
    attributes = f"min_val = -1.25 : f32, max_val = 6.0 : f32, nan_mode = {mode}"
    check_spec(text.render(text.op("clamp", ["%x0"], attributes, "tensor<5xf32>")), [x])


@variants_together
@pytest.mark.parametrize("element", ["i16", "i32"])
def test_clamped_integers(element: str) -> None:
    text = TosaText(f"tensor<300x{element}>")
    attributes = f"min_val = -1000 : {element}, max_val = 2000 : {element}"
    check_spec(text.render(text.op("clamp", ["%x0"], attributes, f"tensor<300x{element}>")), bits=13)


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


def test_a_choice_of_bytes_whose_condition_is_broadcast() -> None:
    text = TosaText("tensor<3x1xi1>", "tensor<3x70xi8>", "tensor<1x70xi8>")
    check_spec(text.render(text.op("select", ["%x0", "%x1", "%x2"], "", "tensor<3x70xi8>")))


@variants_together
@pytest.mark.parametrize("element", ["i8", "i16", "i32"])
@pytest.mark.parametrize("name", ["logical_left_shift", "logical_right_shift"])
def test_logical_shifts(name: str, element: str) -> None:
    bits = int(element[1:])
    text = TosaText(f"tensor<{bits}x9x{element}>", f"tensor<{bits}x1x{element}>")
    amounts = np.arange(bits).reshape(-1, 1).astype(f"int{bits}")
    x = np.random.default_rng(bits).integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (bits, 9)).astype(f"int{bits}")
    check_spec(text.render(text.op(name, ["%x0", "%x1"], "", f"tensor<{bits}x9x{element}>")), [x, amounts])


@variants_together
@pytest.mark.parametrize("element", ["i8", "i16", "i32"])
@pytest.mark.parametrize("rounds", ["true", "false"])
def test_arithmetic_shifts(element: str, rounds: str) -> None:
    bits = int(element[1:])
    text = TosaText(f"tensor<{bits}x9x{element}>", f"tensor<{bits}x1x{element}>")
    amounts = np.arange(bits).reshape(-1, 1).astype(f"int{bits}")
    x = np.random.default_rng(bits).integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (bits, 9)).astype(f"int{bits}")
    shifted = text.op("arithmetic_right_shift", ["%x0", "%x1"], f"round = {rounds}", f"tensor<{bits}x9x{element}>")
    check_spec(text.render(shifted), [x, amounts])


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


_CASTS = [
    ("i8", "i16"),
    ("i8", "i32"),
    ("i16", "i32"),
    ("i16", "i8"),
    ("i32", "i8"),
    ("i32", "i16"),
    ("i1", "i8"),
    ("i8", "i1"),
    ("i32", "i1"),
    ("i1", "i32"),
    ("i8", "f32"),
    ("i16", "f32"),
    ("i32", "f32"),
    ("f32", "i8"),
    ("f32", "i16"),
    ("f32", "i32"),
]


@variants_together
@pytest.mark.parametrize(("source", "target"), _CASTS)
def test_casts(source: str, target: str) -> None:
    text = TosaText(f"tensor<500x{source}>")
    check_spec(text.render(text.op("cast", ["%x0"], "", f"tensor<500x{target}>")))


@variants_together
@pytest.mark.parametrize("target", ["i8", "i16", "i32"])
def test_casts_of_ties_and_of_what_does_not_fit(target: str) -> None:
    text = TosaText("tensor<15xf32>")
    near = [-0.5, 0.5, 1.5, 2.5, -2.5, 126.5, 127.5, 128.0, -128.5, -129.0, 3e4, 4e9, -4e9, 2147483520.0, 2.0**31]
    check_spec(text.render(text.op("cast", ["%x0"], "", f"tensor<15x{target}>")), [np.array(near, np.float32)])


def test_tables_of_16_bits_are_interpolated() -> None:
    text = TosaText("tensor<65536xi16>")
    entries = np.random.default_rng(3).integers(-(2**14), 2**14, 513)
    table = text.op("table", ["%x0", text.constant(entries, "int16")], "", "tensor<65536xi32>")
    check_spec(text.render(table), [np.arange(-32768, 32768).astype(np.int16)])
