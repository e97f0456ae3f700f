"""Depthwise convolutions, convolutions of few channels, and sums of windows."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, check, check_compiled, drawn_inputs, ends, tensor, variants_together
from drawn_graphs import convolution, graph
from numpy.typing import NDArray

import qdialect
from qdialect import PassManager, parse
from qdialect.dialect import Conv2DOp, MatMulOp, TransposeOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference import interpreter
from qdialect.reference.interpreter import run
from qdialect.targets import TARGETS, host_features

# Input, kernel, strides, padding, dilation.
WINDOWS = [
    ((1, 7, 9, 64), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((2, 4, 10, 24), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((1, 9, 18, 16), (3, 3), (2, 2), (0, 0, 1, 1), (1, 1)),
    ((1, 8, 21, 40), (3, 2), (2, 2), (1, 1, 1, 1), (1, 1)),
    ((1, 7, 5, 132), (5, 5), (1, 2), (2, 2, 2, 2), (1, 1)),
    ((1, 6, 33, 4), (2, 3), (1, 2), (0, 0, 0, 0), (1, 1)),
    ((1, 9, 9, 96), (3, 3), (1, 1), (2, 2, 2, 2), (2, 2)),
    ((1, 5, 16, 12), (1, 7), (1, 1), (0, 3, 0, 3), (1, 1)),
    ((1, 3, 4, 72), (3, 1), (1, 1), (1, 0, 1, 0), (1, 1)),
    ((1, 11, 12, 64), (9, 9), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 1, 35, 72), (1, 5), (1, 1), (0, 2, 0, 2), (1, 1)),
    ((1, 1, 40, 64), (1, 9), (1, 2), (0, 4, 0, 4), (1, 1)),
    ((1, 6, 5, 64), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 19, 1, 24), (5, 1), (1, 1), (2, 0, 2, 0), (1, 1)),
]


def depthwise(
    number: int, data: str, values: NDArray[np.uint8] | NDArray[np.int8], points: tuple[int, ...]
) -> ir.Module:
    return convolution((*WINDOWS[number], WINDOWS[number][0][3]), data, values, points)


@variants_together
@pytest.mark.parametrize("number", range(len(WINDOWS)))
def test_any_window(number: int) -> None:
    shape, kernel, *_ = WINDOWS[number]
    values = np.random.default_rng(number).integers(-128, 128, (shape[3], *kernel, 1)).astype(np.int8)
    check(depthwise(number, EIGHT_BIT[number % 2], values, (0,)))


@variants_together
@pytest.mark.parametrize("number", range(len(WINDOWS)))
@pytest.mark.parametrize("name", ["avx2", "sse4.1"])
def test_products_in_pairs_of_extreme_weights(number: int, name: str) -> None:
    shape, kernel, *_ = WINDOWS[number]
    rng = np.random.default_rng(number)
    values = rng.choice([0, 1, 128, 254, 255], (shape[3], *kernel, 1)).astype(np.uint8)
    module = depthwise(number, "ui8", values, tuple(int(point) for point in rng.choice([0, 128, 255], shape[3])))
    inputs = [rng.choice([0, 128, 255], shape).astype(np.uint8)]
    here = name if TARGETS[name].features <= host_features() else f"{name},portable"
    check_compiled(module, here, [inputs], [run(module, inputs)])


@variants_together
@pytest.mark.parametrize(
    ("taps", "products"), [([], 1), ([(1, 1)], 1), ([(0, 1), (1, 1), (2, 1)], 1), ([(1, 0)], 2), ([(0, 2), (2, 1)], 3)]
)
def test_weights_beyond_a_signed_byte(taps: list[tuple[int, int]], products: int) -> None:
    """Too much for the middle column costs nothing, elsewhere a product for each row of the kernel."""
    values = np.random.default_rng(1).integers(0, 227, (64, 3, 3, 1)).astype(np.uint8)
    for channel, (row, column) in enumerate(taps):
        values[5 * channel, row, column] = 255 - channel
    module = depthwise(0, "ui8", values, (100,))
    text = str(lower(module, TARGETS["avx512vbmi"], Phase.LINALG).module)
    micro_kernels = text.count('qnn.role = "start"')
    assert text.count('qnn.role = "k_groups') == products * micro_kernels
    check(module)


def test_weights_at_both_ends_of_nine_bits() -> None:
    values = np.random.default_rng(2).integers(0, 256, (24, 3, 3, 1)).astype(np.uint8)
    values[3, 1, 1] = values[4, 0, 0] = 255
    values[5, 2, 1] = 0
    check(depthwise(1, "i8", values, tuple(255 if channel % 2 else 0 for channel in range(24))))


REQUANTIZED = """
func.func @main(%x: tensor<1x7x9x64xui8>) -> tensor<1x7x9x64xui8> {{
  %w = "qnn.constant"() {{value = dense<3> : tensor<64x3x3x1xi8>}} : () -> tensor<64x3x3x1xi8>
  %0 = "qnn.conv2d"(%x, %w) {{input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: {0}>,
    padding = array<i64: 1, 1, 1, 1>, groups = 64 : i64}}
    : (tensor<1x7x9x64xui8>, tensor<64x3x3x1xi8>) -> tensor<1x7x9x64xi32>
  %1 = "qnn.requantize"(%0) {{input_scale = 0.5 : f64, weight_scales = array<f64: {0}>, output_scale = 2.0 : f64,
    output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"}}
    : (tensor<1x7x9x64xi32>) -> tensor<1x7x9x64xui8>
  return %1 : tensor<1x7x9x64xui8>
}}
"""


@pytest.mark.parametrize(("target", "is_fused"), [("avx512vbmi", True), ("sse4.1", False)])
def test_multipliers_of_channels(target: str, is_fused: bool) -> None:
    """By multiply-adds where a target has them."""
    scales = ", ".join(str(0.01 + 0.001 * channel) for channel in range(64))
    module = parse(REQUANTIZED.format(scales))
    PassManager("fuse-qnn").run(module)
    text = str(lower(module, TARGETS[target], Phase.X86).module)
    assert ("math.fma" in text) == is_fused
    check(module)


# Rows of taps that are no whole number of K groups.

Case = tuple[tuple[int, ...], tuple[int, ...], tuple[int, int], tuple[int, int, int, int], tuple[int, int]]
"""Input, weights, strides, padding, dilation."""
STEM: Case = ((1, 9, 65, 3), (16, 3, 3, 3), (2, 2), (0, 0, 1, 1), (1, 1))
FEW_CHANNELS: list[Case] = [
    STEM,
    ((2, 11, 40, 3), (64, 7, 7, 3), (2, 2), (3, 3, 3, 3), (1, 1)),
    ((1, 7, 33, 1), (24, 5, 5, 1), (1, 1), (2, 1, 1, 3), (1, 1)),
    ((1, 6, 32, 6), (72, 3, 3, 6), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((3, 5, 18, 5), (40, 2, 2, 5), (1, 1), (0, 0, 0, 0), (2, 2)),
    ((1, 4, 131, 3), (20, 3, 3, 3), (1, 2), (1, 0, 0, 1), (2, 1)),
]


def convolved(case: Case, data: str, weight: NDArray[Any], points: tuple[int, ...], input_point: int) -> ir.Module:
    """A convolution whose weights have the zero points `points`."""
    shape, _, strides, padding, dilation = case

    def body(operand: ir.Value) -> ir.Value:
        scales: dict[str, Any] = {"input_scale": 0.5, "weight_scales": (0.25,)}
        zero_points: dict[str, Any] = {"input_zero_point": input_point, "weight_zero_points": points}
        window: dict[str, Any] = {"strides": strides, "padding": padding, "dilation": dilation}
        return build(Conv2DOp, operand, constant(weight), element="i32", **scales, **zero_points, **window).output

    return graph([tensor(shape, data)], body)


def drawn_weight(taps: tuple[int, ...], element: str) -> NDArray[Any]:
    low, high = ends(element)
    return np.random.default_rng(7).integers(low, high, taps, np.uint8 if low == 0 else np.int8, endpoint=True)


def few_channels(case: Case, data: str) -> ir.Module:
    return convolved(case, data, drawn_weight(case[1], "i8"), (0,), ends(data)[1] - 5)


@variants_together
@pytest.mark.parametrize("number", range(len(FEW_CHANNELS)))
@pytest.mark.parametrize("data", EIGHT_BIT)
def test_convolutions(number: int, data: str) -> None:
    module = few_channels(FEW_CHANNELS[number], data)
    check(module)


def test_two_threads() -> None:
    module = few_channels(((1, 120, 130, 3), *FEW_CHANNELS[1][1:]), "ui8")
    [data] = drawn_inputs(module)
    [wanted] = interpreter.run(module, [data])
    np.testing.assert_array_equal(qdialect.compile(module, threads=2)(data), wanted)


@pytest.mark.parametrize("data", EIGHT_BIT)
@pytest.mark.parametrize(("planes", "width"), [(3, 70), (2, 33), (3, 5), (1, 20), (4, 64)])
def test_planes_before_a_convolution(data: str, planes: int, width: int) -> None:
    values = np.random.default_rng(5).integers(-127, 127, size=(16, 3, 3, planes), dtype=np.int8)

    def body(operand: ir.Value) -> ir.Value:
        pixels = build(TransposeOp, operand, element=data, permutation=(0, 2, 3, 1)).output
        attributes: dict[str, Any] = {
            "input_scale": 0.5,
            "input_zero_point": ends(data)[0] + 3,
            "weight_scales": (0.25,),
            "padding": (1, 1, 1, 1),
        }
        return build(Conv2DOp, pixels, constant(values), element="i32", **attributes).output

    check(graph([tensor((2, planes, 7, width), data)], body))


# Windows summed up before the products, for weights with zero points: the same numbers, and only where it pays.

SUMMED: list[Case] = [
    ((1, 9, 11, 19), (40, 3, 3, 19), (2, 1), (0, 1, 1, 0), (1, 1)),
    ((2, 5, 7, 130), (70, 1, 1, 130), (1, 1), (0, 0, 0, 0), (1, 1)),
    ((1, 8, 8, 64), (64, 3, 3, 64), (1, 1), (2, 2, 2, 2), (2, 2)),
    ((1, 6, 17, 3), (130, 3, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((1, 7, 5, 4), (96, 2, 5, 4), (1, 1), (1, 2, 0, 1), (1, 1)),
    ((1, 1, 1, 256), (200, 1, 1, 256), (1, 1), (0, 0, 0, 0), (1, 1)),
]


def summed_convolution(case: Case, data: str, weight: str) -> ir.Module:
    points = tuple(ends(weight)[k % 2] for k in range(case[1][0]))
    return convolved(case, data, drawn_weight(case[1], weight), points, ends(data)[1])


def sums(module: ir.Module, target: str = "avx512vnni") -> bool:
    return "window sums" in lower(module, TARGETS[target], Phase.LINALG).labels


@variants_together
@pytest.mark.parametrize("number", range(len(SUMMED)))
@pytest.mark.parametrize("data", EIGHT_BIT)
def test_summed_windows(number: int, data: str) -> None:
    module = summed_convolution(SUMMED[number], data, EIGHT_BIT[number % 2])
    assert sums(module)
    check(module)


def test_products_of_two_tensors() -> None:
    def body(left: ir.Value, right: ir.Value) -> ir.Value:
        points: dict[str, Any] = {"input_zero_point": 3, "weight_zero_points": (77,)}
        scales: dict[str, Any] = {"input_scale": 0.5, "weight_scales": (0.25,)}
        return build(MatMulOp, left, right, element="i32", **points, **scales).output

    module = graph([tensor((9, 128), "ui8"), tensor((128, 70), "ui8")], body)
    assert sums(module)
    check(module)


@variants_together
@pytest.mark.parametrize("channels", [20, 40, 72, 80, 96, 128, 200])
def test_a_users_array_is_not_read_past_its_end(channels: int) -> None:
    case: Case = ((1, 3, 5, channels), (192, 1, 1, channels), (1, 1), (0, 0, 0, 0), (1, 1))
    module = summed_convolution(case, "ui8", "ui8")
    assert sums(module)
    check(module)
