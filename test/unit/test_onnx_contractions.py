"""Convolutions and matrix products of ONNX models against ONNX Runtime's formulas, from the definitions."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_graphs import CONTRIB, ModelBuilder, convolved, drawn, f32_values, quantized_of, requantized, run, spread

Array = NDArray[Any]
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


def test_qlinear_conv_is_conv_between_quantizations() -> None:
    x, w, window = drawn((1, 3, 6, 7), np.uint8), drawn((4, 3, 3, 3), np.int8), {"pads": [1, 1, 1, 1]}
    b = ModelBuilder()
    weight = (b.constant(w), b.constant(0.02), b.constant(np.array(3, dtype=np.int8)))
    inputs = (b.input("x", x.shape, np.uint8), *b.parameters(X, np.uint8), *weight, *b.parameters(Y, np.uint8))
    content = b.finish(b.node("QLinearConv", *inputs, **window))
    acc = convolved(x.astype(int) - X[1], w.astype(int) - 3, window)
    assert np.array_equal(run(content, x), requantized(acc, X[0], np.array([0.02]), Y))


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


def test_conv_over_one_dimension() -> None:
    x, w = drawn((2, 3, 9), np.int8), drawn((4, 3, 3), np.int8)
    b = ModelBuilder()
    data = b.dequantize(b.input("x", x.shape, np.int8), X, np.int8)
    out = b.quantize(b.node("Conv", data, b.weight(w, 0.02), strides=[2], pads=[1, 0]), Y, np.int8)
    acc = convolved(x[:, :, None].astype(int) - X[1], w[:, :, None], {"strides": [1, 2], "pads": [0, 1, 0, 0]})
    wanted = requantized(acc, X[0], np.array([0.02]), Y, np.int8)[:, :, 0]
    assert np.array_equal(run(b.finish(out, dtype=np.int8), x), wanted)


@pytest.mark.parametrize(
    "window",
    [
        {"strides": [2, 1], "pads": [2, 1, 2, 1], "dilations": [2, 2]},
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
        {"strides": [3, 2], "group": 2},
        {"pads": [2, 0, 1, 2]},
    ],
)
def test_transposed_conv(window: dict[str, Any]) -> None:
    x, w = drawn((1, 4, 3, 5), np.uint8), drawn((4, 2, 3, 3), np.int8)
    b = ModelBuilder()
    data = b.dequantize(b.input("x", x.shape, np.uint8), X)
    out = b.quantize(b.node("ConvTranspose", data, b.weight(w, 0.02), **window), Y)
    acc = spread(x.astype(int) - X[1], w, window)
    assert np.array_equal(run(b.finish(out), x), requantized(acc, X[0], np.array([0.02]), Y))


def test_gemm_with_a_float_bias() -> None:
    """f32 values are divided by the scale of the accumulators and rounded to even."""
    x, w, bias = drawn((3, 5), np.uint8), drawn((4, 5), np.int8), np.array([0.5, -1.25, 0, 3], dtype=np.float32)
    b = ModelBuilder()
    data = b.dequantize(b.input("x", x.shape, np.uint8), (0.25, 7))
    out = b.quantize(b.node("Gemm", data, b.weight(w, 0.5), b.constant(bias), transB=1), Y)
    acc = (x.astype(int) - 7) @ w.T.astype(int) + np.array([4, -10, 0, 24])
    assert np.array_equal(run(b.finish(out), x), requantized(acc, 0.25, np.array([0.5]), Y))


def test_matmul_with_scales_by_column_and_rows_in_batches() -> None:
    x, w, scales = drawn((2, 3, 5), np.int8), drawn((5, 4), np.int8), np.array([0.01, 0.02, 0.03, 0.04], np.float32)
    b = ModelBuilder()
    data = b.dequantize(b.input("x", x.shape, np.int8), X, np.int8)
    weight = b.weight(w, [float(scale) for scale in scales], axis=1)
    content = b.finish(b.quantize(b.node("MatMul", data, weight), Y, np.int8), dtype=np.int8)
    acc = ((x.astype(int) - X[1]) @ w.astype(int)).reshape(6, 4)
    assert np.array_equal(run(content, x).reshape(6, 4), requantized(acc, X[0], scales, Y, np.int8))


def test_qlinear_matmul_and_matmul_integer() -> None:
    x, w = drawn((3, 5), np.uint8), drawn((5, 4), np.uint8)
    acc = (x.astype(int) - X[1]) @ (w.astype(int) - 100)
    b = ModelBuilder()
    data = (b.input("x", x.shape, np.uint8), *b.parameters(X, np.uint8))
    inputs = (*data, b.constant(w), *b.parameters((0.02, 100), np.uint8), *b.parameters(Y, np.uint8))
    assert np.array_equal(
        run(b.finish(b.node("QLinearMatMul", *inputs)), x), requantized(acc, X[0], np.array([0.02]), Y)
    )
    b = ModelBuilder()
    points = (b.constant(np.array(code, dtype=np.uint8)) for code in (X[1], 100))
    content = b.finish(b.node("MatMulInteger", b.input("x", x.shape, np.uint8), b.constant(w), *points), dtype=np.int32)
    assert np.array_equal(run(content, x), acc)


@pytest.mark.parametrize("is_quantized", [True, False])
def test_qgemm_is_float_without_output_parameters(is_quantized: bool) -> None:
    x, w, bias = drawn((3, 5), np.uint8), drawn((4, 5), np.int8), np.arange(4, dtype=np.int32) * 100
    b = ModelBuilder()
    data = (b.input("x", x.shape, np.uint8), *b.parameters(X, np.uint8))
    inputs = (*data, b.constant(w), *b.parameters((0.02, 0), np.int8), b.constant(bias))
    outputs = b.parameters(Y, np.uint8) if is_quantized else ()
    found = run(b.finish(b.node(f"{CONTRIB}.QGemm", *inputs, *outputs, transB=1)), x)
    acc = (x.astype(int) - X[1]) @ w.T.astype(int) + bias
    floats = acc.astype(np.float32) * (np.float32(X[0]) * np.float32(0.02))
    assert np.array_equal(found, requantized(acc, X[0], np.array([0.02]), Y) if is_quantized else floats)


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [("Relu", (0.0, np.inf)), ("Clip", (0.0, 6.0)), ("Clip", (-1.0, np.inf))],
)
def test_an_activation_before_the_quantization_clamps_the_values(kind: str, bounds: tuple[float, float]) -> None:
    x, w = drawn((1, 3, 6, 7), np.uint8), drawn((4, 3, 3, 3), np.int8)
    b = ModelBuilder()
    conv = b.node("Conv", b.dequantize(b.input("x", x.shape, np.uint8), X), b.weight(w, 0.02))
    limits = () if kind == "Relu" else tuple(b.constant(bound) for bound in bounds)
    content = b.finish(b.quantize(b.node(kind, conv, *limits), Y))
    acc = convolved(x.astype(int) - X[1], w, {})
    values = requantized(acc, X[0], np.array([0.02]), Y)
    low, high = (quantized_of(np.array(bound, dtype=np.float32), Y) for bound in bounds)
    assert np.array_equal(run(content, x), np.clip(values, low, high))


def test_conv_can_end_in_floats() -> None:
    x, w = drawn((1, 3, 6, 7), np.uint8), drawn((4, 3, 3, 3), np.int8)
    b = ModelBuilder()
    conv = b.node("Conv", b.dequantize(b.input("x", x.shape, np.uint8), X), b.weight(w, 0.02))
    acc = convolved(x.astype(int) - X[1], w, {})
    wanted = acc.astype(np.float32) * (np.float32(X[0]) * np.float32(0.02))
    assert np.array_equal(run(b.finish(conv, dtype=np.float32), x), wanted)


def test_relu_of_floats_at_the_end() -> None:
    x = drawn((2, 5), np.uint8)
    b = ModelBuilder()
    relu = b.node("Relu", b.dequantize(b.input("x", x.shape, np.uint8), X))
    assert np.array_equal(run(b.finish(relu, dtype=np.float32), x), np.maximum(f32_values(x, X), 0))
