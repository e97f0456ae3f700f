"""A network of 16-bit activations and 8-bit weights, with random weights, as the converter writes one."""

from typing import Any

import numpy as np
import tflite
from i16_nodes import KIND, OPTIONS, RELU, RELU6, SAME, VALID, q
from numpy.typing import NDArray
from tflite_graphs import i32, options, options_of

from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter

Array = NDArray[Any]


class Network:
    """Adds layers one after the other; every activation has the scale 2^-9 or the one its operator asks for."""

    def __init__(self, seed: int) -> None:
        self.writer = ModelWriter("16x8")
        self.rng = np.random.default_rng(seed)
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.scales: dict[int, float] = {}

    def tensor(self, shape: tuple[int, ...], scale: float = 2.0**-9) -> int:
        index = self.writer.tensor(f"t{len(self.shapes)}", shape, np.int16, q(scale))
        self.shapes[index], self.scales[index] = shape, scale
        return index

    def _weights(self, x: int, weight: tuple[int, ...], axis: int) -> list[int]:
        channels = weight[axis]
        values = self.rng.integers(-127, 128, weight).astype(np.int8)
        scales = self.rng.uniform(0.5, 1.5, channels) * 2 / (127 * np.sqrt(np.prod(weight) / channels))
        bias = self.rng.integers(-(2**16), 2**16, channels).astype(np.int64)
        bias_scales = q(*(self.scales[x] * s for s in scales))
        return [
            self.writer.constant(f"w{x}", values, q(*map(float, scales), axis=axis)),
            self.writer.constant(f"b{x}", bias, bias_scales),
        ]

    def conv(self, x: int, channels: int, kernel: int, stride: int, activation: int = RELU6) -> int:
        images, height, width, depth = self.shapes[x]
        y = self.tensor((images, -(-height // stride), -(-width // stride), channels))
        option = options(SAME, stride, stride, activation, 1, 1, tflite.TensorType.INT64)
        inputs = [x, *self._weights(x, (channels, kernel, kernel, depth), 0)]
        self.writer.operator(KIND.CONV_2D, inputs, y, OPTIONS.Conv2DOptions, option)
        return y

    def depthwise(self, x: int, stride: int) -> int:
        images, height, width, depth = self.shapes[x]
        y = self.tensor((images, -(-height // stride), -(-width // stride), depth))
        inputs = [x, *self._weights(x, (1, 3, 3, depth), 3)]
        option = options(SAME, stride, stride, 1, RELU, 1, 1)
        self.writer.operator(KIND.DEPTHWISE_CONV_2D, inputs, y, OPTIONS.DepthwiseConv2DOptions, option)
        return y

    def upsampled(self, x: int, channels: int) -> int:
        images, height, width, depth = self.shapes[x]
        shape = (images, 2 * height, 2 * width, channels)
        y, extents = self.tensor(shape), self.writer.constant(f"shape{x}", i32(shape))
        weight, bias = self._weights(x, (channels, 3, 3, depth), 0)
        option = options(SAME, 2, 2, 0, tflite.TensorType.INT64)
        inputs = [extents, weight, x, bias]
        self.writer.operator(KIND.TRANSPOSE_CONV, inputs, y, OPTIONS.TransposeConvOptions, option)
        return y

    def dense(self, x: int, channels: int) -> int:
        rows, depth = self.shapes[x]
        y = self.tensor((rows, channels))
        option = options(0, 0, 0, 0, tflite.TensorType.INT64)
        inputs = [x, *self._weights(x, (channels, depth), 0)]
        self.writer.operator(KIND.FULLY_CONNECTED, inputs, y, OPTIONS.FullyConnectedOptions, option)
        return y

    def pair(self, kind: int, table: str, x: int, other: int) -> int:
        y = self.tensor(self.shapes[x])
        self.writer.operator(kind, [x, other], y, getattr(OPTIONS, table), options())
        return y

    def function(self, kind: int, x: int, scale: float, *option: Any) -> int:
        y = self.tensor(self.shapes[x], scale)
        self.writer.operator(kind, [x], y, *option)
        return y

    def mean(self, x: int, keep: bool) -> int:
        images, _, _, depth = self.shapes[x]
        y = self.tensor((images, 1, 1, depth) if keep else (images, depth))
        axes = self.writer.constant(f"axes{x}", i32([1, 2]))
        self.writer.operator(KIND.MEAN, [x, axes], y, *options_of("Reducer", int(keep)))
        return y

    def halved(self, x: int, kind: int) -> int:
        images, height, width, depth = self.shapes[x]
        y = self.tensor((images, height // 2, width // 2, depth), self.scales[x])
        self.writer.operator(kind, [x], y, *options_of("Pool2D", VALID, 2, 2, 2, 2, 0))
        return y

    def joined(self, x: int, other: int) -> int:
        shape = (*self.shapes[x][:-1], self.shapes[x][-1] + self.shapes[other][-1])
        y = self.tensor(shape)
        self.writer.operator(KIND.CONCATENATION, [x, other], y, *options_of("Concatenation", 3, 0))
        return y


def classifier(seed: int = 0) -> bytes:
    """Residual blocks, one with squeeze and excitation, a pool, a decoder's layer, and a softmax; f32 at both ends."""
    net = Network(seed)

    image = net.writer.tensor("image", (1, 33, 31, 3), np.float32)
    x = net.tensor((1, 33, 31, 3))
    net.writer.operator(KIND.QUANTIZE, [image], x)
    x = net.conv(x, 21, 3, 2)
    y = net.conv(net.depthwise(net.conv(x, 40, 1, 1), 1), 21, 1, 1, activation=0)
    x = net.pair(KIND.ADD, "AddOptions", x, y)
    x = net.depthwise(x, 2)
    x = net.conv(x, 64, 3, 1)
    gate = net.function(KIND.LOGISTIC, net.conv(net.mean(x, keep=True), 64, 1, 1, activation=0), 2.0**-15)
    x = net.pair(KIND.MUL, "MulOptions", x, gate)
    small = net.halved(x, KIND.MAX_POOL_2D)
    up = net.halved(net.upsampled(small, 16), KIND.AVERAGE_POOL_2D)
    x = net.joined(small, up)
    x = net.conv(x, 50, 3, 1, activation=0)
    x = net.function(KIND.TANH, x, 2.0**-15)
    x = net.dense(net.mean(x, keep=False), 10)
    x = net.function(KIND.SOFTMAX, x, 2.0**-15, *options_of("Softmax", 1.0))
    result = net.writer.tensor("classes", (1, 10), np.float32)
    net.writer.operator(KIND.DEQUANTIZE, [x], result)
    return net.writer.finish([image], [result])
