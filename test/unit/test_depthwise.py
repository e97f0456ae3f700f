"""Depthwise convolutions: compiled for every target, they give what the reference gives."""

import re

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, check
from graphs import convolution
from numpy.typing import NDArray
from together import check_compiled, variants_together

from qdialect import PassManager, parse
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
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


@pytest.mark.parametrize("number", [10, 11])
def test_all_taps_of_a_single_row_are_in_dot_products(number: int) -> None:
    shape, kernel, *_ = WINDOWS[number]
    values = np.random.default_rng(number).integers(-128, 128, (shape[3], *kernel, 1)).astype(np.int8)
    text = str(lower(depthwise(number, "ui8", values, (3,)), TARGETS["avx512vbmi"], Phase.X86).module)
    assert "vpdpbusd" in text
    assert "arith.muli" not in text


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
    ("taps", "products"),
    [
        ([], 1),
        ([(1, 1)], 1),
        ([(0, 1), (1, 1), (2, 1)], 1),
        ([(1, 0)], 2),
        ([(0, 2), (2, 1)], 3),
    ],
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


@pytest.mark.parametrize(("target", "wide"), [("avx512vbmi", set[str]()), ("sse4.1", {"vector<2xi64>"})])
def test_multipliers_of_channels_are_multiplied_in_32_bits(target: str, wide: set[str]) -> None:
    """By multiply-adds, or as words: even and odd lanes apart, so that nothing of 64 bits is wider than a register."""
    scales = ", ".join(str(0.01 + 0.001 * channel) for channel in range(64))
    module = parse(REQUANTIZED.format(scales))
    PassManager("fuse-qnn").run(module)
    text = str(lower(module, TARGETS[target], Phase.X86).module)
    assert ("math.fma" in text) != bool(wide)
    assert set(re.findall(r"arith\.muli .* : (vector<\S*xi64>)", text)) == wide
    check(module)
