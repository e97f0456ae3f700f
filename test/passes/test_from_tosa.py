"""`tosa` modules give what the specification's pseudo-code gives, interpreted and compiled."""

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from compiled_ops import variants_together
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
