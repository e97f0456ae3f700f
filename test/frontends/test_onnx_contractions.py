"""Convolutions and products of ONNX models, with weights at run time too, against ONNX Runtime's formulas."""

from __future__ import annotations

from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pytest
from compiled_ops import check_compiled, variants_together
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx_evaluated import check, refused
from onnx_graphs import ORT, ModelBuilder, agreed, convolved, drawn, f32_values, requantized, run, spread

import qdialect
from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.planning import contraction
from qdialect.reference import interpreter

TYPES = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)]
X, Y = (0.043, 7), (0.31, 5)


WINDOWS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 6, 7), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 4, 7, 7), (6, 2, 3, 2), {"group": 2, "strides": [2, 1], "pads": [0, 1, 2, 0]}),
    ((1, 5, 8, 6), (5, 1, 3, 3), {"group": 5, "dilations": [2, 1], "pads": [2, 1, 2, 1]}),
    ((1, 4, 3, 3), (8, 4, 1, 1), {}),
]


@pytest.mark.parametrize(("data_type", "weight_type"), TYPES)
@pytest.mark.parametrize(("shape", "kernel", "window"), WINDOWS)
def test_conv(
    shape: tuple[int, ...],
    kernel: tuple[int, ...],
    window: dict[str, Any],
    data_type: type[np.generic],
    weight_type: type[np.generic],
) -> None:
    x, w = drawn(shape, data_type, 1), drawn(kernel, weight_type, 2)
    zero_point = 119 if weight_type is np.uint8 else 0
    bias = drawn((kernel[0],), np.int32, 3) // 2**20
    scales = np.linspace(0.01, 0.05, kernel[0]).astype(np.float32)
    b = ModelBuilder()
    data = b.dequantize(b.input("x", shape, data_type), X, data_type)
    weight = b.weight(w, [float(scale) for scale in scales], zero_point=zero_point)
    offset = b.weight(bias, [float(np.float32(X[0]) * scale) for scale in scales])
    out = b.quantize(b.node("Conv", data, weight, offset, **window), Y, data_type)
    acc = convolved(x.astype(int) - X[1], w.astype(int) - zero_point, window) + bias.reshape(1, -1, 1, 1)
    assert np.array_equal(run(b.finish(out, dtype=data_type), x), requantized(acc, X[0], scales, Y, data_type))


@pytest.mark.parametrize(
    ("mode", "pads"), [("SAME_UPPER", [0, 0, 1, 1]), ("SAME_LOWER", [1, 1, 0, 0]), ("VALID", [0, 0, 0, 0])]
)
def test_padding_by_mode(mode: str, pads: list[int]) -> None:
    x, w = drawn((1, 2, 5, 7), np.uint8), drawn((2, 2, 2, 2), np.uint8)
    b = ModelBuilder()
    content = b.finish(b.node("ConvInteger", b.input("x", x.shape, np.uint8), b.constant(w), auto_pad=mode))
    assert np.array_equal(run(content, x), convolved(x, w, {"pads": pads}))


def test_conv_integer_has_zero_points_and_no_scale() -> None:
    x, w, points = drawn((1, 2, 5, 7), np.uint8), drawn((3, 2, 3, 3), np.uint8), np.array([1, 2, 200], dtype=np.uint8)
    b = ModelBuilder()
    inputs = (b.input("x", x.shape, np.uint8), b.constant(w), b.constant(np.array(9, dtype=np.uint8)))
    content = b.finish(b.node("ConvInteger", *inputs, b.constant(points), pads=[1, 1, 1, 1]), dtype=np.int32)
    wanted = convolved(x.astype(int) - 9, w.astype(int) - points.reshape(-1, 1, 1, 1), {"pads": [1, 1, 1, 1]})
    assert np.array_equal(run(content, x), wanted)


def test_conv_can_end_in_floats() -> None:
    x, w = drawn((1, 3, 6, 7), np.uint8), drawn((4, 3, 3, 3), np.int8)
    b = ModelBuilder()
    conv = b.node("Conv", b.dequantize(b.input("x", x.shape, np.uint8), X), b.weight(w, 0.02))
    acc = convolved(x.astype(int) - X[1], w, {})
    wanted = acc.astype(np.float32) * (np.float32(X[0]) * np.float32(0.02))
    assert np.array_equal(run(b.finish(conv, dtype=np.float32), x), wanted)


# Convolutions and pools over three dimensions: integer products, and results by ONNX Runtime's formulas.

Array = NDArray[Any]


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 4, 5, 6), (4, 3, 3, 3, 3), {"pads": [1, 1, 1, 1, 1, 1]}),
    ((2, 4, 5, 6, 7), (6, 2, 2, 3, 1), {"group": 2, "strides": [2, 1, 2], "pads": [0, 1, 0, 1, 0, 2]}),
    ((1, 5, 7, 4, 5), (5, 1, 3, 2, 2), {"group": 5, "dilations": [2, 1, 3], "pads": [2, 0, 1, 3, 1, 0]}),
    ((1, 3, 5, 3, 3), (2, 3, 1, 2, 2), {"strides": [3, 1, 1], "pads": [1, 0, 0, 0, 0, 0]}),
]
TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 4, 2, 3, 2), (4, 3, 2, 2, 2), {"strides": [2, 2, 2]}),
    ((2, 4, 3, 2, 3), (4, 2, 3, 1, 2), {"strides": [2, 1, 3], "group": 2, "pads": [1, 0, 0, 0, 0, 1]}),
    ((1, 2, 3, 3, 2), (2, 3, 2, 3, 2), {"dilations": [2, 1, 1], "output_padding": [1, 1, 0], "strides": [3, 2, 1]}),
    ((1, 2, 3, 2, 2), (2, 1, 1, 1, 1), {"strides": [2, 1, 1], "pads": [1, 0, 0, 2, 0, 0]}),
]


def _compiled(content: bytes, x: Array) -> Array:
    """What compiled code gives, which is what the reference gives."""
    result = qdialect.compile(import_onnx(content))(x)
    np.testing.assert_array_equal(result, run(content, x))
    assert isinstance(result, np.ndarray)
    return result


def _layer(kind: str, shape: tuple[int, ...], w: Array, channels: int, window: dict[str, Any]) -> tuple[bytes, Array]:
    """A layer between quantizations, and the bias in units of its accumulators."""
    axis = 0 if kind == "Conv" else 1
    scales = np.linspace(0.01, 0.05, w.shape[axis]).astype(np.float32)
    bias = drawn((channels,), np.int32, 3) // 2**20
    b = ModelBuilder()
    data = b.dequantize(b.input("x", shape, np.uint8), X)
    weight = b.weight(w, [float(scale) for scale in scales], axis=axis)
    factors = np.float32(X[0]) * np.tile(scales, channels // len(scales))
    offset = b.weight(bias, [float(factor) for factor in factors])
    return b.finish(b.quantize(b.node(kind, data, weight, offset, **window), Y)), bias.reshape(1, -1, 1, 1, 1)


@pytest.mark.parametrize(("shape", "kernel", "window"), CONVOLUTIONS)
def test_convolutions(shape: tuple[int, ...], kernel: tuple[int, ...], window: dict[str, Any]) -> None:
    x, w = drawn(shape, np.uint8, 1), drawn(kernel, np.int8, 2)
    content, bias = _layer("Conv", shape, w, kernel[0], window)
    scales = np.linspace(0.01, 0.05, kernel[0]).astype(np.float32)
    wanted = requantized(convolved(x.astype(int) - X[1], w, window) + bias, X[0], scales, Y)
    np.testing.assert_array_equal(_compiled(content, x), wanted)


@pytest.mark.parametrize(("shape", "kernel", "window"), TRANSPOSED)
def test_transposed_convolutions(shape: tuple[int, ...], kernel: tuple[int, ...], window: dict[str, Any]) -> None:
    x, w, groups = drawn(shape, np.uint8, 1), drawn(kernel, np.int8, 2), window.get("group", 1)
    content, bias = _layer("ConvTranspose", shape, w, kernel[1] * groups, window)
    scales = np.tile(np.linspace(0.01, 0.05, kernel[1]).astype(np.float32), groups)
    wanted = requantized(spread(x.astype(int) - X[1], w, window) + bias, X[0], scales, Y)
    np.testing.assert_array_equal(_compiled(content, x), wanted)


def test_qlinear_conv() -> None:
    shape, kernel, window = CONVOLUTIONS[0]
    x, w = drawn(shape, np.uint8), drawn(kernel, np.int8)
    b = ModelBuilder()
    weight = (b.constant(w), b.constant(0.02), b.constant(np.array(3, dtype=np.int8)))
    inputs = (b.input("x", shape, np.uint8), *b.parameters(X, np.uint8), *weight, *b.parameters(Y, np.uint8))
    content = b.finish(b.node("QLinearConv", *inputs, **window))
    sums = convolved(x.astype(int) - X[1], w.astype(int) - 3, window)
    np.testing.assert_array_equal(_compiled(content, x), requantized(sums, X[0], np.array([0.02]), Y))


POOLS: list[dict[str, Any]] = [
    {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]},
    {"kernel_shape": [3, 2, 3], "strides": [1, 2, 2], "pads": [1, 0, 1, 1, 1, 1]},
    {"kernel_shape": [2, 3, 2], "strides": [3, 2, 2], "ceil_mode": 1},
]


def _means(x: Array, window: dict[str, Any]) -> Array:
    """Windows of f32 values, added in row-major order; padding is not counted."""
    kernel, strides, pads = window["kernel_shape"], window["strides"], window.get("pads", [0] * 6)
    rounded = np.ceil if window.get("ceil_mode") else np.floor
    size = [int(rounded((x.shape[2 + i] + pads[i] + pads[3 + i] - kernel[i]) / strides[i])) + 1 for i in range(3)]
    result = np.zeros((*x.shape[:2], *size), np.float32)
    for at in product(*map(range, size)):
        taps = [range(at[i] * strides[i] - pads[i], at[i] * strides[i] - pads[i] + kernel[i]) for i in range(3)]
        inside = [[tap for tap in taps[i] if 0 <= tap < x.shape[2 + i]] for i in range(3)]
        total = np.zeros(x.shape[:2], np.float32)
        for d, h, w in product(*inside):
            total += x[:, :, d, h, w]
        result[:, :, *at] = total / np.float32(np.prod([len(one) for one in inside]))
    return result


@pytest.mark.parametrize("window", POOLS)
def test_pools(window: dict[str, Any]) -> None:
    """The largest quantized values and, as QLinearAveragePool, sums in float32; of floats too."""
    x = drawn((2, 3, 5, 5, 6), np.uint8, 4)
    b = ModelBuilder()
    data = b.dequantize(b.input("x", x.shape, np.uint8), X)
    content = b.finish(b.quantize(b.node("MaxPool", data, **window), X))
    b = ModelBuilder()
    (wanted,) = _onnx(b.finish(b.node("MaxPool", b.input("x", x.shape, np.uint8), **window)), x)
    np.testing.assert_array_equal(_compiled(content, x), wanted)
    b = ModelBuilder()
    average = b.node("AveragePool", b.dequantize(b.input("x", x.shape, np.uint8), X), **window)
    to = (X[0] * 0.7, 3)
    mean = _means(f32_values(x, X), window)
    wanted = np.clip(np.rint(mean / np.float32(to[0]) + np.float32(to[1])), 0, 255)
    np.testing.assert_array_equal(_compiled(b.finish(b.quantize(average, to)), x), wanted)


def _onnx(content: bytes, *inputs: Array) -> list[Array]:
    evaluator: Any = ReferenceEvaluator(ModelProto.FromString(content))
    return evaluator.run(None, dict(zip("xw", inputs, strict=False)))


def test_largest_of_dilated_windows() -> None:
    x = drawn((1, 2, 6, 5, 6), np.int8, 5)
    b = ModelBuilder()
    b.input("x", x.shape, np.int8)
    window = {"kernel_shape": [2, 2, 3], "dilations": [3, 2, 1], "strides": [2, 1, 2], "pads": [1, 0, 1, 0, 1, 1]}
    found = _compiled(b.finish(b.node("MaxPool", "x", **window), dtype=np.int8), x)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 1), (1, 1)), constant_values=-128)
    for d, h, w in np.ndindex(*found.shape[2:]):
        part = padded[:, :, 2 * d : 2 * d + 4 : 3, h : h + 3 : 2, 2 * w : 2 * w + 3]
        np.testing.assert_array_equal(found[:, :, d, h, w], part.max(axis=(2, 3, 4)))


# Conv, QLinearConv and ConvInteger whose weights the network is given or computes: ONNX Runtime's bits.

KERNELS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "3x3": ((2, 5, 7, 6), (4, 5, 3, 3), {"pads": [1, 1, 1, 1]}),
    "strides and dilation": (
        (1, 3, 11, 9),
        (7, 3, 3, 2),
        {"strides": [2, 1], "dilations": [1, 2], "pads": [0, 1, 2, 0]},
    ),
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
    agreed(b.finish(y), drawn(data, np.uint8), drawn(weight, dtype, seed=1))


@variants_together
@pytest.mark.parametrize("kernel", ["depthwise", "rows"])
def test_groups_of_convolutions(kernel: str) -> None:
    data, weight, attributes = KERNELS[kernel]
    b = ModelBuilder()
    x = b.dequantize(b.input("x", data, np.uint8), (0.02, 131))
    w = b.dequantize(b.input("w", weight, np.int8), (0.01, 0), np.int8)
    y = b.quantize(b.node("Conv", x, w, **attributes), (0.13, 120))
    agreed(b.finish(y), drawn(data, np.uint8), drawn(weight, np.int8, seed=1))


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
    wanted = ORT.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    (as_floats,) = interpreter.run(import_onnx(content), [x])
    assert np.abs(as_floats.astype(int) - np.asarray(wanted).astype(int)).max() <= (kernel not in ("1x1", "MatMul"))
    with mock.patch.object(contraction, "_EXACT_TERMS", 0):
        module = import_onnx(content)
    (found,) = interpreter.run(module, [x])
    check_compiled(module, "host", [[x]], [[found]])
    assert np.abs(found.astype(int) - np.asarray(wanted).astype(int)).max() <= 1
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
    agreed(b.finish(y), drawn(data, np.uint8), drawn(weight, np.int8, seed=1))


def test_weights_that_the_network_computes() -> None:
    """The kernel is what another convolution gives, whose channels lie last."""
    b = ModelBuilder()
    x = b.input("x", (4, 3, 5, 5), np.uint8)
    parameters = b.parameters((0.02, 131), np.uint8)
    taps = (b.constant(drawn((3, 3, 3, 3), np.int8, seed=2)), *b.parameters((0.01, 0), np.int8))
    w = b.node("QLinearConv", x, *parameters, *taps, *parameters)
    y = b.node("QLinearConv", x, *parameters, w, *parameters, *b.parameters((0.13, 120), np.uint8))
    agreed(b.finish(y), drawn((4, 3, 5, 5), np.uint8))


@pytest.mark.parametrize(
    ("weight", "point", "reason"),
    [
        ((4, 3, 3, 3), 1, "input must have 1 * 3 channels, but got 5"),
        ((4, 5, 3), 1, "weight must have 4 dimensions, but got 3"),
    ],
)
def test_what_does_not_fit_is_refused(weight: tuple[int, ...], point: int, reason: str) -> None:
    b = ModelBuilder()
    names = [b.input("x", (1, 5, 6, 6), np.uint8), b.input("w", weight, np.uint8)]
    names += [b.constant(np.array(point, np.uint8))]
    assert reason in refused(b.finish(b.node("ConvInteger", *names), dtype=np.int32))


def test_both_are_not_known() -> None:
    b = ModelBuilder()
    names = [b.input("x", (1, 5, 6, 6), np.uint8), b.input("w", (4, 5, 3, 3), np.uint8), b.input("z", (), np.uint8)]
    content = b.finish(b.node("ConvInteger", *names), dtype=np.int32)
    assert "weight must be constant where the zero point of the data is not" in refused(content)


# QuantizeLinear and DequantizeLinear with parameters of run time: bit for bit what the standard says.

RANDOM = np.random.default_rng(0)
X_RUN_TIME_PARAMETERS: NDArray[Any] = (RANDOM.normal(size=(3, 5, 7)) * 4).astype(np.float32)
SCALE = np.array(0.037, np.float32)


def _drawn(dtype: Any, *shape: int) -> NDArray[Any]:
    bounds = np.iinfo(dtype)
    return RANDOM.integers(bounds.min, bounds.max, shape, endpoint=True).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_one_scale(dtype: Any) -> None:
    point = np.array(9, dtype)
    check("QuantizeLinear", [X_RUN_TIME_PARAMETERS, SCALE, point], version=21)
    check("DequantizeLinear", [_drawn(dtype, 3, 7), SCALE, point], version=21)
    check("DequantizeLinear", [_drawn(dtype, 3, 7), SCALE], version=21)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_along_an_axis(axis: int) -> None:
    extent: int = X_RUN_TIME_PARAMETERS.shape[axis]
    scales = RANDOM.uniform(0.01, 0.1, extent).astype(np.float32)
    points = RANDOM.integers(-20, 20, extent).astype(np.int8)
    check("QuantizeLinear", [X_RUN_TIME_PARAMETERS, scales, points], axis=axis, version=21)
    check("QuantizeLinear", [X_RUN_TIME_PARAMETERS, scales, points], axis=axis, constants=1, version=21)
    check("DequantizeLinear", [_drawn(np.int8, *X_RUN_TIME_PARAMETERS.shape), scales, points], axis=axis, version=21)


@pytest.mark.parametrize(
    ("scale", "point", "reason"),
    [
        ((4,), None, "scale must have 1 or 5 entries, but got 4"),
        ((5, 1), None, "scale must have 0 or 1 dimensions, but got 2"),
        ((5,), (), "zero point must be i8 of shape [5], but got []"),
    ],
)
def test_run_time_parameters_that_do_not_fit_are_refused(
    scale: tuple[int, ...], point: tuple[int, ...] | None, reason: str
) -> None:
    model = ModelBuilder()
    names = [model.input("x", X_RUN_TIME_PARAMETERS.shape, np.int8), model.input("s", scale)]
    names += [] if point is None else [model.input("z", point, np.int8)]
    assert reason in refused(model.finish(model.node("DequantizeLinear", *names), dtype=np.float32))
