"""`tosa` modules give what the specification's pseudo-code gives, interpreted and compiled."""

import re
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from compiled_ops import tensor, variants_together
from tosa_graphs import LARGER, TosaText, check_spec, convolution, network, operand, random_pairs, random_values

from qdialect.frontends.tosa import import_tosa

MODES = ("SINGLE_ROUND", "INEXACT_ROUND", "DOUBLE_ROUND")
ROUNDED = ("SINGLE_ROUND", "DOUBLE_ROUND")
ELEMENTS = ("i8", "i16", "i32")
FULL = [(2**30, 31), (1518500250, 33), (2**31 - 1, 40), (3 << 29, 36), (2**30 + 1, 62)]
EXACT = [(1, 2), (1, 31), (12345, 20), (2**29 + 5, 35), (1, 62), (0, 33), (2**30 - 1, 31)]
# Of two roundings: those that need no second nudge, and those that do.
SHORT = [(12345, 14), (1, 31), (0, 40), (2**29, 30)]
SHORTEST = [(1000, 32), (12345, 40), (3, 33), (2**29, 31), (2**30 - 1, 62), (0, 50)]
NARROW = [[(2**15 - 1, 14)], [(2**14, 15)], [(77, 9)], [(2**15 - 1, 14), (77, 9), (2**14, 20)]]
Rescale = tuple[str, str, list[tuple[int, int]], dict[str, Any], dict[str, Any]]
"""The types before and after, multipliers with their shifts, and how it is written and checked."""


def rescales() -> Iterator[Rescale]:
    for mode, element, pair in product(MODES, ELEMENTS, FULL):
        how = {"mode": mode, "zero_points": (0, -7 * (element == "i8"))}
        yield "3x777xi32", f"3x777x{element}", [pair], how, {"bits": min(32, pair[1])}
    near = [np.arange(-40_000, 40_000, dtype=np.int32)]
    yield from (("80000xi32", "80000xi32", [(3 << 29, 34)], {"mode": mode}, {"inputs": near}) for mode in MODES)
    for mode, pairs in (("SINGLE_ROUND", EXACT), ("DOUBLE_ROUND", SHORT)):
        how = {"mode": mode}
        yield from (("4097xi32", "4097xi32", [pair], how, {"bits": min(17, pair[1])}) for pair in pairs)
    yield from (("4097xi32", "4097xi32", [pair], {"mode": "DOUBLE_ROUND"}, {"bits": 31}) for pair in SHORTEST)
    channels = [(2**30, 33), (77, 20), (100_000, 41)]
    yield "50x3xi32", "50x3xi8", channels, {"mode": "DOUBLE_ROUND", "zero_points": (0, -9)}, {"bits": 19}
    yield from (("100x3xi16", "100x3xi32", pairs, {"scale32": False}, {"bits": 8}) for pairs in NARROW)
    every = [np.arange(256).astype(np.uint8).view(np.int8)]
    for mode, unsigned in product(MODES, product((False, True), repeat=2)):
        points = (200 if unsigned[0] else -60, 100 if unsigned[1] else 30)
        how = {"mode": mode, "unsigned": unsigned, "zero_points": points}
        yield "256xi8", "256xi8", [(1518500250, 30)], how, {"inputs": every}
    for mode, source, target in product(ROUNDED, ELEMENTS, ELEMENTS):
        how = {"mode": mode, "zero_points": (5 if source == "i8" else 0, -7 if target == "i8" else 0)}
        yield f"7x50x{source}", f"7x50x{target}", [(1518500250, 35)], how, {}
    for mode, types, unsigned in product(
        ROUNDED,
        [("i16", "i8"), ("i16", "i16"), ("i8", "i16"), ("i16", "i32")],
        [(True, False), (False, True), (True, True)],
    ):
        flags = (unsigned[0], unsigned[1] and types[1] != "i32")
        points = [(100 if one == "i8" else 2**15) * flag for one, flag in zip(types, flags, strict=True)]
        how = {"mode": mode, "unsigned": flags, "zero_points": points}
        yield f"700x{types[0]}", f"700x{types[1]}", [(2**30, 33)], how, {}
    yield "i32", "i8", [(1000, 32)], {"mode": "DOUBLE_ROUND"}, {}


RESCALES = list(rescales())


@variants_together
@pytest.mark.parametrize("number", range(len(RESCALES)))
def test_rescales(number: int) -> None:
    source, result, pairs, how, check = RESCALES[number]
    text = TosaText(f"tensor<{source}>")
    check_spec(text.render(text.rescale("%x0", f"tensor<{result}>", pairs, **how)), **check)


def test_unsigned_bytes_go_to_accumulators_and_back() -> None:
    text = TosaText("tensor<256xi8>")
    wide = text.rescale("%x0", "tensor<256xi32>", [(2**30, 10)], (255, 0), unsigned=(True, False))
    back = text.rescale(wide, "tensor<256xi8>", [(2**30, 50)], (0, 3), unsigned=(False, True))
    check_spec(text.render(wide, back), [np.arange(256).astype(np.uint8).view(np.int8)])


@variants_together
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("channels", [1, 3, 17])
@pytest.mark.parametrize("per_channel", [False, True])
def test_a_convolution_and_its_rescale_are_one_kernel(mode: str, channels: int, per_channel: bool) -> None:
    text = TosaText(f"tensor<1x6x7x{channels}xi8>")
    window = "pad = array<i64: 1, 0, 1, 1>, stride = array<i64: 2, 1>, dilation = array<i64: 1, 2>"
    weights = random_values((5, 3, 3, channels))
    sums = convolution(text, "conv2d", "%x0", weights, "tensor<1x3x5x5xi32>", window, [10, -200, 3000, 0, 5])
    values = text.rescale(sums, "tensor<1x3x5x5xi8>", random_pairs(5 if per_channel else 1), (0, -12), mode)
    clamped = text.op("clamp", [values], "min_val = -100 : i8, max_val = 90 : i8", "tensor<1x3x5x5xi8>")
    fused = str(check_spec(text.render(clamped)))
    assert "qnn.fused_conv2d" in fused
    assert "qnn.requantize" not in fused


def test_accumulators_with_two_readers_keep_their_own_multipliers() -> None:
    text = TosaText("tensor<1x4x4x3xi8>")
    window = "pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>"
    sums = convolution(text, "conv2d", "%x0", random_values((2, 1, 1, 3)), "tensor<1x4x4x2xi32>", window, [1])
    both = [text.rescale(sums, "tensor<1x4x4x2xi8>", random_pairs(n), (0, n), "DOUBLE_ROUND") for n in (1, 2)]
    check_spec(text.render(*both))


def test_tables_negation_and_identity() -> None:
    text = TosaText("tensor<256xi8>")
    entries = np.random.default_rng(3).permutation(256) - 128
    table = text.op("table", ["%x0", text.constant(entries, "int8")], "", "tensor<256xi8>")
    same = text.op("identity", [table], "", "tensor<256xi8>")
    points = [text.constant(point, "int8") for point in (-5, 9)]
    negated = text.op("negate", ["%x0", *points], "", "tensor<256xi8>")
    check_spec(text.render(same, negated), [np.arange(-128, 128).astype(np.int8)])


def test_a_sum_that_no_op_has_stays_one_of_integers() -> None:
    text = TosaText("tensor<3x70xi8>", "tensor<3x70xi8>")
    operands = [operand(text, "%x0", (2**30, 20), -128), operand(text, "%x1", (1518500250, 20), 7)]
    total = text.op("add", operands, "", "tensor<3x70xi32>")
    module = check_spec(text.render(text.rescale(total, "tensor<3x70xi8>", [(1400000000, 42)], (0, 3))))
    assert "arith.addi" in str(module)


@variants_together
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lhs", [LARGER, (1518500250, 12), (2**31 - 1, 31)])
@pytest.mark.parametrize("shape", ["1x3x1x5", "2x3x4x5"])
def test_a_decomposed_sum_is_one_op(mode: str, lhs: tuple[int, int], shape: str) -> None:
    text = TosaText(f"tensor<{shape}xi8>", "tensor<2x3x4x5xi8>")
    operands = [operand(text, "%x0", lhs, -128), operand(text, "%x1", LARGER, 50)]
    total = text.op("add", operands, "", "tensor<2x3x4x5xi32>")
    fused = str(check_spec(text.render(text.rescale(total, "tensor<2x3x4x5xi8>", [(1400000000, 50)], (0, 3), mode))))
    assert "qnn.add" in fused
    assert "arith.addi" not in fused


@variants_together
@pytest.mark.parametrize(("scales", "wanted"), [((0.25, 0.5), 0.5), ((0.25, 0.2), 0.5), ((1e9, 0.5), 1.0)])
def test_scales_of_an_interface_are_used_where_they_fit(scales: tuple[float, float], wanted: float) -> None:
    text = TosaText("tensor<3x70xi8>", "tensor<3x70xi8>")
    operands = [operand(text, "%x0", (2**30, 12), -128), operand(text, "%x1", LARGER, 7)]
    total = text.op("add", operands, "", "tensor<3x70xi32>")
    rendered = text.render(text.rescale(total, "tensor<3x70xi8>", [(1400000000, 50)], (0, 3)))
    for number, scale in enumerate(scales):
        known = f"{{qnn.scale = {scale:e} : f64, qnn.zero_point = 0 : i64}}"
        rendered = rendered.replace(f"%x{number}: tensor<3x70xi8>", f"%x{number}: tensor<3x70xi8> {known}", 1)
    assert f"rhs_scale = {wanted:e} : f64" in str(check_spec(rendered))


@variants_together
@pytest.mark.parametrize("mode", MODES)
def test_a_decomposed_product_is_one_op(mode: str) -> None:
    text = TosaText("tensor<3x70xi8>", "tensor<3x70xi8>")
    operands = [operand(text, name, (2**30, 30), point) for name, point in (("%x0", -128), ("%x1", 7))]
    product = text.op("mul", [*operands, text.constant(0, "int8")], "", "tensor<3x70xi32>")
    fused = str(check_spec(text.render(text.rescale(product, "tensor<3x70xi8>", [(1400000000, 38)], (0, 3), mode))))
    assert "qnn.mul" in fused
    assert "arith.muli" not in fused


@variants_together
@pytest.mark.parametrize("mode", ["SINGLE_ROUND", "DOUBLE_ROUND"])
def test_a_network_is_a_few_kernels(mode: str) -> None:
    text = network(mode)
    module = check_spec(text.render(list(text.types)[-1]))
    names = [op.operation.name for op in module.body.operations[0].regions[0].blocks[0].operations]
    fused = [name for name in names if name.startswith("qnn.fused")]
    assert fused == ["qnn.fused_conv2d"] * 3
    assert not any(name in ("qnn.add", "qnn.requantize", "qnn.clip") for name in names)


@variants_together
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_extreme_values(name: str) -> None:
    text = TosaText("tensor<3x11x5xi8>")
    check_spec(text.render(text.op(name, ["%x0"], "axis = 1 : i32", "tensor<3x1x5xi8>")))


def test_regions_read_converted_values_and_constants() -> None:
    text = str(
        import_tosa("""
      func.func @main(%x: tensor<5xi8>, %which: tensor<5xi32>) -> tensor<5xi8> {
        %first = arith.constant 0 : index
        %number = tensor.extract %which[%first] : tensor<5xi32>
        %zero = arith.constant 0 : i32
        %holds = arith.cmpi sgt, %number, %zero : i32
        %values = "tosa.const"() <{values = dense<[1, 2, 3, 4, 5]> : tensor<5xi8>}> : () -> tensor<5xi8>
        %clamped = tosa.clamp %x {min_val = -9 : i8, max_val = 127 : i8} : (tensor<5xi8>) -> tensor<5xi8>
        %y = scf.if %holds -> tensor<5xi8> {
          scf.yield %clamped : tensor<5xi8>
        } else {
          scf.yield %values : tensor<5xi8>
        }
        return %y : tensor<5xi8>
      }""")
    )
    (clamped,) = re.findall(r"(%\w+) = \"qnn.clip\"", text)
    (values,) = re.findall(r"(%\w+) = \"qnn.constant\"", text)
    assert re.findall(r"scf.yield (%\w+)", text) == [clamped, values]


def test_other_ops_read_constants() -> None:
    text = str(
        import_tosa("""
      func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {
        %values = "tosa.const"() <{values = dense<[1, 2]> : tensor<2xi8>}> : () -> tensor<2xi8>
        %clamped = tosa.clamp %x {min_val = -9 : i8, max_val = 127 : i8} : (tensor<2xi8>) -> tensor<2xi8>
        %y = arith.maxsi %clamped, %values : tensor<2xi8>
        return %y : tensor<2xi8>
      }""")
    )
    assert "qnn.constant" in text


# Every form of RESCALE gives what the specification's pseudo-code gives.


def test_parameters_that_are_known_at_run_time() -> None:
    text = TosaText("tensor<6x3xi32>", "tensor<3xi32>", "tensor<3xi8>")
    points = [text.constant(0, "int32"), text.constant(4, "int8")]
    flags = "per_channel = true, input_unsigned = false, output_unsigned = false, scale32 = true"
    attributes = f"rounding_mode = DOUBLE_ROUND, {flags}"
    value = text.op("rescale", ["%x0", "%x1", "%x2", *points], attributes, "tensor<6x3xi8>")
    multipliers, shifts = np.array([2**30, 77, 2**31 - 1], np.int32), np.array([36, 20, 40], np.int8)
    x = np.random.default_rng(4).integers(-(2**18), 2**18, (6, 3)).astype(np.int32)
    check_spec(text.render(value), [x, multipliers, shifts])


# Each op gives what the specification's pseudo-code gives.

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
