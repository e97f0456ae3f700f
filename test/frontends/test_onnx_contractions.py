"""Convolutions and products of ONNX models, with weights at run time too: ONNX Runtime's numbers and formulas."""

from typing import Any
from unittest import mock

import numpy as np
import pytest
from compiled_ops import check_compiled, variants_together
from onnx_graphs import (
    Array,
    Known,
    ModelBuilder,
    Operand,
    agreed,
    check,
    check_node,
    convolved,
    drawn,
    drawn_weights,
    node,
    of_onnx_runtime,
    refused,
    run,
    run_both,
)
from tolerances import assert_within, tolerance_of

from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.planning import contraction
from qdialect.reference import interpreter

X, Y = (0.043, 7), (0.31, 5)
Shape = tuple[int, ...]

WINDOWS: list[tuple[Shape, Shape, dict[str, Any]]] = [
    ((1, 3, 6, 7), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 4, 7, 7), (6, 2, 3, 2), {"group": 2, "strides": [2, 1], "pads": [0, 1, 2, 0]}),
    ((1, 5, 8, 6), (5, 1, 3, 3), {"group": 5, "dilations": [2, 1], "pads": [2, 1, 2, 1]}),
    ((1, 4, 3, 3), (8, 4, 1, 1), {}),
    ((1, 3, 4, 5, 6), (4, 3, 3, 3, 3), {"pads": [1, 1, 1, 1, 1, 1]}),
    ((2, 4, 5, 6, 7), (6, 2, 2, 3, 1), {"group": 2, "strides": [2, 1, 2], "pads": [0, 1, 0, 1, 0, 2]}),
    ((1, 5, 7, 4, 5), (5, 1, 3, 2, 2), {"group": 5, "dilations": [2, 1, 3], "pads": [2, 0, 1, 3, 1, 0]}),
    ((1, 3, 5, 3, 3), (2, 3, 1, 2, 2), {"strides": [3, 1, 1], "pads": [1, 0, 0, 0, 0, 0]}),
]
TRANSPOSED: list[tuple[Shape, Shape, dict[str, Any]]] = [
    ((1, 4, 2, 3, 2), (4, 3, 2, 2, 2), {"strides": [2, 2, 2]}),
    ((2, 4, 3, 2, 3), (4, 2, 3, 1, 2), {"strides": [2, 1, 3], "group": 2, "pads": [1, 0, 0, 0, 0, 1]}),
    ((1, 2, 3, 3, 2), (2, 3, 2, 3, 2), {"dilations": [2, 1, 1], "output_padding": [1, 1, 0], "strides": [3, 2, 1]}),
    ((1, 2, 3, 2, 2), (2, 1, 1, 1, 1), {"strides": [2, 1, 1], "pads": [1, 0, 0, 2, 0, 0]}),
]


def layer(kind: str, x: Array, w: Array, channels: int, window: dict[str, Any]) -> bytes:
    """A layer between quantizations, with a scale for each channel and a bias in units of its accumulators."""
    axis, point = 0 if kind == "Conv" else 1, 119 if w.dtype == np.uint8 else 0
    scales = np.linspace(0.01, 0.05, w.shape[axis]).astype(np.float32)
    factors = np.float32(X[0]) * np.tile(scales, channels // len(scales))
    b, dtype = ModelBuilder(), x.dtype.type
    data = b.dequantize(b.input("x", x.shape, dtype), X, dtype)
    weight = b.weight(w, scales.tolist(), axis=axis, zero_point=point)
    offset = b.weight(drawn((channels,), np.int32, 3) // 2**20, factors.tolist())
    return b.finish(b.quantize(b.node(kind, data, weight, offset, **window), Y, dtype), dtype=dtype)


@variants_together
@pytest.mark.parametrize(("data_type", "weight_type"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize(("shape", "kernel", "window"), WINDOWS)
def test_convolutions(shape: Shape, kernel: Shape, window: dict[str, Any], data_type: Any, weight_type: Any) -> None:
    x, w = drawn(shape, data_type, 1), drawn(kernel, weight_type, 2)
    agreed(layer("Conv", x, w, kernel[0], window), x)


@variants_together
@pytest.mark.parametrize(("shape", "kernel", "window"), TRANSPOSED)
def test_transposed_convolutions(shape: Shape, kernel: Shape, window: dict[str, Any]) -> None:
    x, w = drawn(shape, np.uint8, 1), drawn(kernel, np.int8, 2)
    content = layer("ConvTranspose", x, w, kernel[1] * window.get("group", 1), window)
    assert_within(run_both(content, x), of_onnx_runtime(content, x)[0], tolerance_of(".onnx", "ConvTranspose"))


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_padding_by_mode(mode: str) -> None:
    check_node("ConvInteger", [drawn((1, 2, 5, 7), np.uint8), Known(drawn((2, 2, 2, 2), np.uint8))], auto_pad=mode)


def test_conv_integer_has_zero_points_and_no_scale() -> None:
    x, w, points = drawn((1, 2, 5, 7), np.uint8), drawn((3, 2, 3, 3), np.uint8), np.array([1, 2, 200], dtype=np.uint8)
    content, _ = node("ConvInteger", [x, Known(w), Known(np.array(9, np.uint8)), Known(points)], pads=[1, 1, 1, 1])
    wanted = convolved(x.astype(int) - 9, w.astype(int) - points.reshape(-1, 1, 1, 1), {"pads": [1, 1, 1, 1]})
    assert np.array_equal(run(content, x), wanted)


def test_conv_can_end_in_floats() -> None:
    x, w = drawn((1, 3, 6, 7), np.uint8), drawn((4, 3, 3, 3), np.int8)
    b = ModelBuilder()
    conv = b.node("Conv", b.dequantize(b.input("x", x.shape, np.uint8), X), b.weight(w, 0.02))
    wanted = convolved(x.astype(int) - X[1], w, {}).astype(np.float32) * (np.float32(X[0]) * np.float32(0.02))
    assert np.array_equal(run(b.finish(conv, dtype=np.float32), x), wanted)


POOLS: list[dict[str, Any]] = [
    {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]},
    {"kernel_shape": [3, 2, 3], "strides": [1, 2, 2], "pads": [1, 0, 1, 1, 1, 1]},
    {"kernel_shape": [2, 3, 2], "strides": [3, 2, 2], "ceil_mode": 1},
]


@variants_together
@pytest.mark.parametrize("window", POOLS)
def test_pools_of_volumes(window: dict[str, Any]) -> None:
    x = drawn((2, 3, 5, 5, 6), np.uint8, 4)
    for kind, to in (("MaxPool", X), ("AveragePool", (X[0] * 0.7, 3))):
        b = ModelBuilder()
        pooled = b.node(kind, b.dequantize(b.input("x", x.shape, np.uint8), X), **window)
        agreed(b.finish(b.quantize(pooled, to)), x)


def test_largest_of_dilated_windows() -> None:
    window: dict[str, Any] = {"kernel_shape": [2, 2, 3], "dilations": [3, 2, 1], "strides": [2, 1, 2]}
    check_node("MaxPool", [drawn((1, 2, 6, 5, 6), np.int8, 5)], pads=[1, 0, 1, 0, 1, 1], **window)


# Weights that the network is given or computes.

KERNELS: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "3x3": ((2, 5, 7, 6), (4, 5, 3, 3), {"pads": [1, 1, 1, 1]}),
    "gaps": ((1, 3, 11, 9), (7, 3, 3, 2), {"strides": [2, 1], "dilations": [1, 2], "pads": [0, 1, 2, 0]}),
    "groups": ((1, 6, 5, 5), (9, 2, 3, 3), {"group": 3, "pads": [1, 0, 1, 0]}),
    "depthwise": ((1, 6, 8, 8), (6, 1, 3, 3), {"group": 6}),
    "rows": ((2, 4, 17), (3, 4, 5), {"pads": [2, 2]}),
    "1x1": ((1, 19, 3, 4), (17, 19, 1, 1), {}),
}


@variants_together
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("kernel", KERNELS)
def test_quantized_convolutions(kernel: str, dtype: Any) -> None:
    data, weight, attributes = KERNELS[kernel]
    b = ModelBuilder()
    x = (b.input("x", data, np.uint8), *b.parameters((0.02, 131), np.uint8))
    w = (b.input("w", weight, dtype), *b.parameters((0.01, 3 if dtype is np.uint8 else 0), dtype))
    bias = b.constant(np.arange(weight[0], dtype=np.int32) * 900 - 1000)
    y = b.node("QLinearConv", *x, *w, *b.parameters((0.13, 120), np.uint8), bias, **attributes)
    agreed(b.finish(y), drawn(data, np.uint8), drawn_weights(weight, dtype, seed=1))


@variants_together
@pytest.mark.parametrize("kernel", ["depthwise", "rows"])
def test_groups_of_convolutions(kernel: str) -> None:
    data, weight, attributes = KERNELS[kernel]
    b = ModelBuilder()
    x = b.dequantize(b.input("x", data, np.uint8), (0.02, 131))
    w = b.dequantize(b.input("w", weight, np.int8), (0.01, 0), np.int8)
    y = b.quantize(b.node("Conv", x, w, **attributes), (0.13, 120))
    agreed(b.finish(y), drawn(data, np.uint8), drawn_weights(weight, np.int8, seed=1))


# Contractions of 16-bit data: up to 256 terms are f32 sums of ONNX Runtime's order, more are exact sums, scaled once.


@variants_together
@pytest.mark.parametrize(
    ("dtype", "points", "bias"), [(np.int16, (0, 0), None), (np.int16, (-700, 90), 2.0), (np.uint16, (40000, 21), 1.0)]
)
@pytest.mark.parametrize("kernel", [*(name for name in KERNELS if name != "depthwise"), "MatMul", "Gemm"])
def test_sixteen_bit_data(kernel: str, dtype: Any, points: tuple[int, int], bias: float | None) -> None:
    """The scale of a bias is that of the accumulators, or a multiple of it, which makes it floats."""
    data, weight, attributes = KERNELS.get(kernel, ((5, 33), (33, 9), {}))
    axis = 1 if kernel in ("MatMul", "Gemm") else 0
    w, channels = np.random.default_rng(1).integers(-119, 8, weight, np.int8), weight[axis]
    scales = np.linspace(0.004, 0.02, channels).astype(np.float32)
    limits = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(limits.min, limits.max, data, dtype, endpoint=True)
    b = ModelBuilder()
    names = [b.dequantize(b.input("x", data, dtype), (1e-4, points[0]), dtype)]
    names += [b.weight(w, [float(scale) for scale in scales], axis, zero_point=7)]
    offset = np.arange(channels, dtype=np.int32) * 90001
    if bias is not None and kernel != "MatMul":
        names += [b.weight(offset, [float(np.float32(1e-4) * scale * bias) for scale in scales])]
    kind = kernel if axis else "Conv"
    content = b.finish(
        b.quantize(b.node(kind, *names, **attributes), (3e-4, points[1]), dtype), dtype=dtype, version=21
    )
    wanted = of_onnx_runtime(content, x)[0].astype(int)
    (as_floats,) = interpreter.run(import_onnx(content), [x])
    assert np.abs(as_floats.astype(int) - wanted).max() <= (kernel not in ("1x1", "MatMul"))
    with mock.patch.object(contraction, "_EXACT_TERMS", 0):
        module = import_onnx(content)
    (found,) = interpreter.run(module, [x])
    check_compiled(module, "host", [[x]], [[found]])
    assert np.abs(found.astype(int) - wanted).max() <= 1
    if kernel == "rows" or (bias == 2 and kernel != "MatMul"):
        return
    assert "qnn.i16_requantize" in str(module)
    centered, taps = x.astype(int) - points[0], w.astype(int) - 7
    acc = centered @ taps if axis else convolved(centered, taps, attributes)
    shape = (1, channels, *(1 for _ in acc.shape[2:]))
    acc = acc if len(names) == 2 else acc + offset.reshape(shape)
    factors = np.float64(np.float32(1e-4)) * scales.astype(np.float64) / np.float64(np.float32(3e-4))
    exact = np.rint(acc * factors.reshape(shape)) + points[1]
    assert np.array_equal(found, np.clip(exact, limits.min, limits.max))


@pytest.mark.parametrize(
    ("weight", "group", "output"),
    [
        (np.full((2, 4, 1, 1), 90, np.int16), 1, np.uint16),
        (np.full((2, 4, 1, 1), 140, np.uint8), 1, np.uint16),
        (np.full((4, 1, 3, 3), 9, np.int8), 4, np.uint16),
        (np.full((2, 4, 1, 1), 9, np.int8), 1, np.uint8),
    ],
)
def test_sums_that_words_do_not_hold_are_floats(weight: Any, group: int, output: Any) -> None:
    b = ModelBuilder()
    data = b.dequantize(b.input("x", (1, 4, 5, 5), np.uint16), (1e-4, 9), np.uint16)
    names = [data, b.weight(weight, [0.01] * len(weight))]
    y = b.quantize(b.node("Conv", *names, group=group), (3e-3, 3), output)
    assert "qnn.f32_conv2d" in str(import_onnx(b.finish(y, dtype=output, version=21)))


def test_weights_by_channel() -> None:
    data, weight, attributes = KERNELS["groups"]
    b = ModelBuilder()
    scales = np.linspace(0.004, 0.02, weight[0]).astype(np.float32)
    x = (b.input("x", data, np.uint8), *b.parameters((0.02, 131), np.uint8))
    w = (b.input("w", weight, np.int8), b.constant(scales), b.constant(np.zeros(weight[0], np.int8)))
    y = b.node("QLinearConv", *x, *w, *b.parameters((0.13, 120), np.uint8), **attributes)
    agreed(b.finish(y), drawn(data, np.uint8), drawn_weights(weight, np.int8, seed=1))


def test_weights_that_the_network_computes() -> None:
    """The kernel is what another convolution gives, whose channels lie last."""
    b = ModelBuilder()
    x = b.input("x", (4, 3, 5, 5), np.uint8)
    parameters = b.parameters((0.02, 131), np.uint8)
    taps = (b.constant(drawn((3, 3, 3, 3), np.int8, seed=2)), *b.parameters((0.01, 0), np.int8))
    w = b.node("QLinearConv", x, *parameters, *taps, *parameters)
    y = b.node("QLinearConv", x, *parameters, w, *parameters, *b.parameters((0.13, 120), np.uint8))
    agreed(b.finish(y), drawn((4, 3, 5, 5), np.uint8))


UNFIT: list[tuple[Operand, Operand, str]] = [
    (np.zeros((4, 3, 3, 3), np.uint8), Known(np.array(1, np.uint8)), "input must have 1 * 3 channels, but got 5"),
    (np.zeros((4, 5, 3), np.uint8), Known(np.array(1, np.uint8)), "weight must have 4 dimensions, but got 3"),
    (
        np.zeros((4, 5, 3, 3), np.uint8),
        np.array(0, np.uint8),
        "weight must be constant where the zero point of the data is not",
    ),
]


@pytest.mark.parametrize(("weight", "point", "reason"), UNFIT)
def test_weights_that_do_not_fit_are_refused(weight: Operand, point: Operand, reason: str) -> None:
    assert reason in refused(node("ConvInteger", [np.zeros((1, 5, 6, 6), np.uint8), weight, point])[0])


# QuantizeLinear and DequantizeLinear with parameters of run time: bit for bit what the standard says.

FLOATS = (np.random.default_rng(0).normal(size=(3, 5, 7)) * 4).astype(np.float32)
SCALE = np.array(0.037, np.float32)


@variants_together
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_one_scale(dtype: Any) -> None:
    point = np.array(9, dtype)
    check("QuantizeLinear", [FLOATS, SCALE, point], version=21)
    check("DequantizeLinear", [drawn((3, 7), dtype), SCALE, point], version=21)
    check("DequantizeLinear", [drawn((3, 7), dtype), SCALE], version=21)


@variants_together
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_along_an_axis(axis: int) -> None:
    extent, random = int(FLOATS.shape[axis]), np.random.default_rng(1)
    scales = random.uniform(0.01, 0.1, extent).astype(np.float32)
    points = random.integers(-20, 20, extent).astype(np.int8)
    check("QuantizeLinear", [FLOATS, scales, points], axis=axis, version=21)
    check("QuantizeLinear", [FLOATS, scales, Known(points)], axis=axis, version=21)
    check("DequantizeLinear", [drawn(FLOATS.shape, np.int8), scales, points], axis=axis, version=21)


@pytest.mark.parametrize(
    ("scale", "point", "reason"),
    [
        ((4,), None, "scale must have 1 or 5 entries, but got 4"),
        ((5, 1), None, "scale must have 0 or 1 dimensions, but got 2"),
        ((5,), np.array(0, np.int8), "zero point must be i8 of shape [5], but got []"),
    ],
)
def test_run_time_parameters_that_do_not_fit_are_refused(scale: Shape, point: Array | None, reason: str) -> None:
    assert reason in refused(node("DequantizeLinear", [drawn(FLOATS.shape, np.int8), scale, point])[0])
