"""Convolutions and matrix products of ONNX models against ONNX Runtime's formulas, from the definitions."""

from typing import Any

import numpy as np
import pytest
from onnx_graphs import ModelBuilder, convolved, drawn, f32_values, requantized, run

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


def test_relu_of_floats_at_the_end() -> None:
    x = drawn((2, 5), np.uint8)
    b = ModelBuilder()
    relu = b.node("Relu", b.dequantize(b.input("x", x.shape, np.uint8), X))
    assert np.array_equal(run(b.finish(relu, dtype=np.float32), x), np.maximum(f32_values(x, X), 0))
