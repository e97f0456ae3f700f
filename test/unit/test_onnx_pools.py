"""Pools of ONNX models, from the definition: the cells of each window, one by one."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_graphs import CONTRIB, ModelBuilder, drawn, run

import qdialect
from qdialect.arithmetic import Multiplier, real_multiplier
from qdialect.dialect import MeanOp
from qdialect.frontends.onnx import import_onnx

Array = NDArray[Any]
X, Y = (0.043, 117), (0.031, 5)


def cells(x: Array, window: Mapping[str, Any], output: tuple[int, int]) -> Iterator[tuple[int, int, Array]]:
    """Row, column and cells inside the image, [N, C, k], of each window; parameters as in the node's attributes."""
    kernel, strides = window["kernel_shape"], window.get("strides", [1, 1])
    steps, pads = window.get("dilations", [1, 1]), window.get("pads", [0, 0, 0, 0])
    for i, j in np.ndindex(*output):
        starts = (i * strides[0] - pads[0], j * strides[1] - pads[1])
        positions = [(starts[0] + a * steps[0], starts[1] + b * steps[1]) for a, b in np.ndindex(*kernel)]
        inside = [(row, column) for row, column in positions if 0 <= row < x.shape[2] and 0 <= column < x.shape[3]]
        rows, columns = zip(*inside, strict=True)
        yield i, j, x[:, :, rows, columns]


WINDOWS: list[tuple[dict[str, Any], tuple[int, int]]] = [
    ({"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, (5, 4)),
    ({"kernel_shape": [3, 2], "strides": [2, 3], "pads": [0, 1, 2, 0]}, (5, 3)),
    ({"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, (5, 4)),
    ({"kernel_shape": [3, 3], "strides": [3, 2], "pads": [2, 0, 2, 1], "ceil_mode": 1}, (4, 4)),
    # A third row would start in the padding after the image.
    ({"kernel_shape": [2, 2], "strides": [5, 2], "pads": [1, 0, 1, 0], "ceil_mode": 1}, (2, 4)),
    ({"kernel_shape": [2, 3], "auto_pad": "VALID"}, (8, 5)),
]
DILATED: list[tuple[dict[str, Any], tuple[int, int]]] = [
    ({"kernel_shape": [3, 2], "dilations": [2, 3], "pads": [1, 0, 1, 1]}, (7, 5)),
    ({"kernel_shape": [2, 2], "dilations": [3, 2], "strides": [2, 2], "ceil_mode": 1}, (4, 3)),
]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(("window", "output"), [*WINDOWS, *DILATED])
def test_max_pool(window: dict[str, Any], output: tuple[int, int], dtype: type[np.generic]) -> None:
    x = drawn((2, 3, 9, 7), dtype)
    b = ModelBuilder()
    pooled = b.node("MaxPool", b.dequantize(b.input("x", x.shape, dtype), (0.1, 3), dtype), **window)
    found = run(b.finish(b.quantize(pooled, (0.1, 3), dtype), dtype=dtype), x)
    assert found.shape == (2, 3, *output)
    for i, j, inside in cells(x, window, output):
        assert np.array_equal(found[:, :, i, j], inside.max(axis=2))


@pytest.mark.parametrize("is_qlinear", [True, False])
@pytest.mark.parametrize("counts_padding", [True, False])
@pytest.mark.parametrize(("window", "output"), WINDOWS)
def test_average_pool(window: dict[str, Any], output: tuple[int, int], counts_padding: bool, is_qlinear: bool) -> None:
    """Padding counts as zeros or not at all; ONNX Runtime's sums of floats come within a step of the exact mean."""
    x, attributes = drawn((2, 3, 9, 7), np.uint8), window | {"count_include_pad": int(counts_padding)}
    b = ModelBuilder()
    data = b.input("x", x.shape, np.uint8)
    if is_qlinear:
        parameters = (*b.parameters(X, np.uint8), *b.parameters(Y, np.uint8))
        out = b.node(f"{CONTRIB}.QLinearAveragePool", data, *parameters, **attributes)
    else:
        out = b.quantize(b.node("AveragePool", b.dequantize(data, X), **attributes), Y)
    found = run(b.finish(out), x)
    assert found.shape == (2, 3, *output)
    for i, j, inside in cells(x, window, output):
        count = math.prod(window["kernel_shape"]) if counts_padding else inside.shape[2]
        mean = (inside.astype(float) - X[1]).sum(axis=2) * X[0] / count
        assert np.all(np.abs(found[:, :, i, j] - np.clip(mean / Y[0] + Y[1], 0, 255)) <= 0.5 + 1e-4)


def test_ties_of_windows_that_count_differently() -> None:
    """Quantized values 0 and 1 average to one half, which goes to even after the zero point is added."""
    x = np.arange(2, dtype=np.uint8).reshape(1, 1, 1, 2)
    for zero_point, wanted in ((4, [[4, 4, 5]]), (5, [[5, 6, 6]])):
        b = ModelBuilder()
        data = b.dequantize(b.input("x", x.shape, np.uint8), (0.5, 0))
        pooled = b.node("AveragePool", data, kernel_shape=[1, 2], pads=[0, 1, 0, 1])
        assert run(b.finish(b.quantize(pooled, (0.5, zero_point))), x)[0, 0].tolist() == wanted


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_one_dimension(kind: str) -> None:
    x, window = drawn((2, 3, 9), np.uint8), {"kernel_shape": [3], "strides": [2], "pads": [1, 0]}
    b = ModelBuilder()
    pooled = b.node(kind, b.dequantize(b.input("x", x.shape, np.uint8), X), **window)
    found = run(b.finish(b.quantize(pooled, X)), x)
    flat = {"kernel_shape": [1, 3], "strides": [1, 2], "pads": [0, 1, 0, 0]}
    for _, j, inside in cells(x[:, :, np.newaxis], flat, (1, 4)):
        wanted = inside.max(axis=2) if kind == "MaxPool" else inside.mean(axis=2)
        assert np.all(np.abs(found[:, :, j] - wanted) <= (0 if kind == "MaxPool" else 0.5 + 1e-4))


@pytest.mark.parametrize("is_qlinear", [True, False])
def test_global_average_pool(is_qlinear: bool) -> None:
    x = drawn((2, 3, 7, 7), np.uint8)
    b = ModelBuilder()
    data = b.input("x", x.shape, np.uint8)
    if is_qlinear:
        parameters = (*b.parameters(X, np.uint8), *b.parameters(Y, np.uint8))
        out = b.node(f"{CONTRIB}.QLinearGlobalAveragePool", data, *parameters)
    else:
        out = b.quantize(b.node("GlobalAveragePool", b.dequantize(data, X)), Y)
    factor = np.float32(X[0]) / (np.float32(Y[0]) * np.float32(49))
    sums = (x.astype(int) - X[1]).sum(axis=(2, 3), keepdims=True)
    wanted = np.clip(np.rint(sums.astype(np.float32) * factor) + Y[1], 0, 255)
    assert np.array_equal(run(b.finish(out), x), wanted)


@pytest.mark.parametrize("shape", [(2, 3, 7), (2, 3, 4, 5), (1, 3, 2, 3, 4)])
def test_global_max_pool(shape: tuple[int, ...]) -> None:
    x = drawn(shape, np.int8)
    b = ModelBuilder()
    pooled = b.node("GlobalMaxPool", b.dequantize(b.input("x", shape, np.int8), (0.1, 3), np.int8))
    found = run(b.finish(b.quantize(pooled, (0.1, 3), np.int8), dtype=np.int8), x)
    assert np.array_equal(found, x.max(axis=tuple(range(2, len(shape))), keepdims=True))


@pytest.mark.parametrize("kind", ["AveragePool", "GlobalAveragePool"])
def test_channels_last_is_a_transposition(kind: str) -> None:
    x, window = drawn((2, 5, 6, 3), np.uint8), {"kernel_shape": [2, 3]} if kind == "AveragePool" else {}
    found: list[Array] = []
    for channels_last, data in ((1, x), (0, x.transpose(0, 3, 1, 2))):
        b = ModelBuilder()
        parameters = (*b.parameters(X, np.uint8), *b.parameters(Y, np.uint8))
        name = b.input("x", data.shape, np.uint8)
        out = b.node(f"{CONTRIB}.QLinear{kind}", name, *parameters, channels_last=channels_last, **window)
        found.append(run(b.finish(out), np.ascontiguousarray(data)))
    assert np.array_equal(found[0], found[1].transpose(0, 2, 3, 1))


def test_max_pool_of_values_and_of_what_is_quantized_later() -> None:
    x, weight = drawn((1, 3, 6, 6), np.uint8), drawn((4, 3, 1, 1), np.int8)
    b = ModelBuilder()
    content = b.finish(b.node("MaxPool", b.input("x", x.shape, np.uint8), kernel_shape=[6, 6]))
    assert np.array_equal(run(content, x), x.max(axis=(2, 3), keepdims=True))
    outputs: list[Array] = []
    for first in ("quantize", "pool"):
        b = ModelBuilder()
        conv = b.node("Conv", b.dequantize(b.input("x", x.shape, np.uint8), X), b.weight(weight, 0.02))
        held = b.dequantize(b.quantize(conv, (0.1, 90)), (0.1, 90)) if first == "quantize" else conv
        pooled = b.node("MaxPool", held, kernel_shape=[2, 2], strides=[2, 2])
        outputs.append(run(b.finish(b.quantize(pooled, (0.1, 90))), x))
    assert np.array_equal(outputs[0], outputs[1])


@pytest.mark.parametrize("window", [window for window, _ in DILATED])
def test_compiled_dilated_windows(window: dict[str, Any]) -> None:
    x = drawn((2, 19, 9, 7), np.int8)
    b = ModelBuilder()
    pooled = b.node("MaxPool", b.dequantize(b.input("x", x.shape, np.int8), (0.1, 3), np.int8), **window)
    content = b.finish(b.quantize(pooled, (0.1, 3), np.int8), dtype=np.int8)
    assert np.array_equal(qdialect.compile(import_onnx(content))(x), run(content, x))


def test_multiplier_of_a_global_average_has_the_bits_of_a_float32_product_and_quotient() -> None:
    """Sums of one image each; among the scales there are such as neither way to form a multiplier gives."""
    x, rng = np.arange(90, dtype=np.uint8).reshape(90, 1, 1, 1).repeat(7, axis=3), np.random.default_rng(0)
    for _ in range(40):
        before, after = (float(np.float32(value)) for value in rng.uniform(0.002, 0.1, 2))
        b = ModelBuilder()
        pooled = b.node("GlobalAveragePool", b.dequantize(b.input("x", x.shape, np.uint8), (before, 0)))
        module = import_onnx(b.finish(b.quantize(pooled, (after, 0))))
        op = next(op for op in module.body.operations[0].regions[0].blocks[0].operations if isinstance(op, MeanOp))
        found = np.float32(real_multiplier(op.input_scale, [1.0], op.output_scale, Multiplier(op.multiplier))[0] / 7)
        assert found == np.float32(before) / (np.float32(after) * np.float32(7))
