"""Convolutions and matrix products of 16-bit activations beside LiteRT's reference kernels: no element differs."""

from typing import Any

import numpy as np
import pytest
import tflite
from i16_nodes import KIND, OPTIONS, RELU, RELU6, SAME, VALID, Array, Node, Shape, check, drawn, extents, q
from tflite_graphs import i32, options
from together import variants_together

from qdialect.frontends.tflite.flatbuffer.writer import Quantization

BIAS_TYPES = {np.int32: tflite.TensorType.INT32, np.int64: tflite.TensorType.INT64}
CONVOLUTIONS: list[tuple[Shape, Shape, int, Any, Any]] = [
    ((1, 5, 7, 3), (8, 3, 3, 3), SAME, (1, 1), (1, 1)),
    ((2, 9, 8, 16), (21, 3, 3, 16), SAME, (2, 2), (1, 1)),
    ((1, 6, 6, 6), (10, 1, 1, 3), VALID, (1, 1), (1, 1)),
    ((1, 9, 9, 5), (7, 3, 2, 5), VALID, (1, 2), (2, 1)),
    ((1, 1, 1, 67), (3, 1, 1, 67), VALID, (1, 1), (1, 1)),
    ((1, 4, 4, 600), (2, 3, 3, 600), SAME, (1, 1), (1, 1)),
]


@variants_together
@pytest.mark.parametrize("bias", [np.int32, np.int64])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("number", range(len(CONVOLUTIONS)))
def test_convolutions(number: int, per_channel: bool, bias: Any) -> None:
    data, weight, padding, strides, dilation = CONVOLUTIONS[number]
    activation = (0, RELU, RELU6)[(number + per_channel + (bias is np.int64)) % 3]
    x, w = drawn(data), drawn(weight, np.int8, 1)
    if bias is np.int32:
        # What int32 does not hold has no meaning in the kernel.
        x >>= 5
    b = np.random.default_rng(2).integers(-(2**20), 2**20, weight[0]).astype(bias)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, weight[0] if per_channel else 1).tolist()
    size = extents(data, weight[1:3], padding, strides, dilation)
    output = (2.0**-6) * np.sqrt(np.prod(weight[1:]))
    entries = padding, strides[1], strides[0], activation, dilation[1], dilation[0], BIAS_TYPES[bias]
    option = OPTIONS.Conv2DOptions, options(*entries)
    parameters = [q(0.003), q(*scales), q(*(0.003 * s for s in scales))]
    shape = (data[0], *size, weight[0])
    check(Node(KIND.CONV_2D, [x, w, b], parameters, q(float(output)), shape, option, (1, 2)))


DEPTHWISE: list[tuple[Shape, Shape, int, Any, Any]] = [
    ((1, 5, 7, 8), (1, 3, 3, 8), SAME, (1, 1), (1, 1)),
    ((2, 9, 8, 19), (1, 3, 3, 19), SAME, (2, 2), (1, 1)),
    ((1, 8, 8, 3), (1, 3, 2, 12), VALID, (1, 1), (2, 1)),
    ((1, 1, 1, 1), (1, 1, 1, 1), VALID, (1, 1), (1, 1)),
]


@variants_together
@pytest.mark.parametrize(("data", "weight", "padding", "strides", "dilation"), DEPTHWISE)
def test_depthwise_convolutions(data: Shape, weight: Shape, padding: int, strides: Any, dilation: Any) -> None:
    x, w, channels = drawn(data), drawn(weight, np.int8, 1), weight[3]
    b = np.random.default_rng(2).integers(-(2**30), 2**30, channels).astype(np.int64)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, channels).tolist()
    size = extents(data, weight[1:3], padding, strides, dilation)
    entries = padding, strides[1], strides[0], channels // data[3], RELU6, dilation[1], dilation[0]
    option = OPTIONS.DepthwiseConv2DOptions, options(*entries)
    parameters = [q(0.003), q(*scales, axis=3), q(*(0.003 * s for s in scales))]
    shape = (data[0], *size, channels)
    check(Node(KIND.DEPTHWISE_CONV_2D, [x, w, b], parameters, q(0.02), shape, option, (1, 2)))


TRANSPOSED: list[tuple[Shape, Shape, Shape, int, Any]] = [
    ((1, 3, 4, 5), (7, 3, 3, 5), (1, 6, 8, 7), SAME, (2, 2)),
    ((1, 3, 4, 5), (7, 3, 3, 5), (1, 7, 9, 7), VALID, (2, 2)),
    ((2, 5, 3, 3), (4, 2, 2, 3), (2, 10, 6, 4), SAME, (2, 2)),
    ((1, 4, 4, 3), (4, 3, 2, 3), (1, 4, 4, 4), SAME, (1, 1)),
    ((1, 2, 2, 1), (1, 1, 1, 1), (1, 5, 4, 1), VALID, (3, 3)),
    ((1, 4, 4, 8), (9, 1, 1, 8), (1, 8, 8, 9), SAME, (2, 2)),
]


@variants_together
@pytest.mark.parametrize("bias", [None, np.int32, np.int64])
@pytest.mark.parametrize(("data", "weight", "shape", "padding", "strides"), TRANSPOSED)
def test_transposed_convolutions(
    data: Shape, weight: Shape, shape: Shape, padding: int, strides: Any, bias: Any
) -> None:
    x, w = drawn(data), drawn(weight, np.int8, 1)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, weight[0]).tolist()
    entries = padding, strides[1], strides[0], 0, BIAS_TYPES.get(bias, 0)
    option = OPTIONS.TransposeConvOptions, options(*entries)
    arrays: list[Array] = [i32(shape), w, x >> 3]
    parameters: list[Quantization | None] = [None, q(*scales), q(0.003)]
    if bias is not None:
        arrays.append(np.random.default_rng(2).integers(-(2**20), 2**20, weight[0]).astype(bias))
        parameters.append(q(*(0.003 * s for s in scales)))
    constants = (0, 1, 3)
    check(Node(KIND.TRANSPOSE_CONV, arrays, parameters, q(0.01), shape, option, constants))


@variants_together
@pytest.mark.parametrize("bias", [None, np.int32, np.int64])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(("rows", "depth", "channels"), [(1, 5, 19), (3, 70, 10), (7, 1030, 33), (1, 1, 1)])
def test_fully_connected(rows: int, depth: int, channels: int, per_channel: bool, bias: Any) -> None:
    x, w = drawn((rows, depth)), drawn((channels, depth), np.int8, 1)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, channels if per_channel else 1).tolist()
    option = OPTIONS.FullyConnectedOptions, options(RELU if per_channel else 0, 0, 0, 0, BIAS_TYPES.get(bias, 0))
    arrays, parameters = [x >> 4, w], [q(0.003), q(*scales)]
    if bias is not None:
        arrays.append(np.random.default_rng(2).integers(-(2**20), 2**20, channels).astype(bias))
        parameters.append(q(*(0.003 * s for s in scales)))
    node = Node(KIND.FULLY_CONNECTED, arrays, parameters, q(0.01), (rows, channels), option, (1, 2))
    check(node)


@variants_together
@pytest.mark.parametrize("bias", [None, np.int32, np.int64])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(("rows", "depth", "channels"), [(1, 5, 19), (7, 330, 33)])
def test_fully_connected_with_words_for_weights(
    rows: int, depth: int, channels: int, per_channel: bool, bias: Any
) -> None:
    x, w = drawn((rows, depth)), drawn((channels, depth), np.int16, 1)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, channels if per_channel else 1).tolist()
    option = OPTIONS.FullyConnectedOptions, options(RELU if per_channel else 0, 0, 0, 0, BIAS_TYPES.get(bias, 0))
    arrays, parameters = [x, w], [q(0.003), q(*scales)]
    if bias is not None:
        arrays.append(np.random.default_rng(2).integers(-(2**30), 2**30, channels).astype(bias))
        parameters.append(q(*(0.003 * s for s in scales)))
    check(Node(KIND.FULLY_CONNECTED, arrays, parameters, q(1.7), (rows, channels), option, (1, 2)))


MATRICES: list[tuple[Shape, Shape, bool, bool]] = [
    ((2, 3, 7), (2, 7, 5), False, False),
    ((2, 3, 7), (2, 5, 7), False, True),
    ((3, 7, 3), (3, 7, 5), True, False),
    ((1, 4, 33), (1, 33, 20), False, False),
]


@variants_together
@pytest.mark.parametrize("right", [np.int8, np.int16])
@pytest.mark.parametrize("constants", [(), (1,)])
@pytest.mark.parametrize(("lhs", "rhs", "adj_x", "adj_y"), MATRICES)
def test_batch_matmul(lhs: Shape, rhs: Shape, adj_x: bool, adj_y: bool, constants: Any, right: Any) -> None:
    shape = (lhs[0], lhs[2] if adj_x else lhs[1], rhs[1] if adj_y else rhs[2])
    arrays, option = (
        [drawn(lhs) >> 2, drawn(rhs, right, 1)],
        (OPTIONS.BatchMatMulOptions, options(int(adj_x), int(adj_y))),
    )
    scale = 0.01 if right is np.int8 else 1.7
    check(Node(KIND.BATCH_MATMUL, arrays, [q(0.003), q(0.007)], q(scale), shape, option, constants))
