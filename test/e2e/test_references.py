"""N5: a whole network of 16-bit activations and 8-bit weights: compiled, it is LiteRT's reference, bit for bit."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tflite
from tflite_graphs import i32, options_of, reference

from qdialect import targets
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

KIND = tflite.BuiltinOperator
RELU, RELU6 = tflite.ActivationFunctionType.RELU, tflite.ActivationFunctionType.RELU6
SAME, VALID, INT64 = tflite.Padding.SAME, tflite.Padding.VALID, tflite.TensorType.INT64
STEP, OF_ONE = 2.0**-9, 2.0**-15
Shape = tuple[int, ...]


class Network(ModelWriter):
    """Every activation has the scale `STEP` or the one its operator asks for; inputs are known by their indices."""

    def __init__(self, seed: int) -> None:
        super().__init__("16x8")
        self.rng, self.count = np.random.default_rng(seed), 0

    def node(self, kind: int, inputs: Sequence[int], shape: Shape, *option: Any, scale: float = STEP) -> int:
        self.count += 1
        y = self.tensor(f"t{self.count}", shape, np.int16, Quantization((scale,), (0,)))
        self.operator(kind, inputs, y, *option)
        return y

    def weights(self, shape: Shape, axis: int = 0) -> list[int]:
        """Random ones with a scale for each channel, and a bias."""
        self.count, count = self.count + 1, shape[axis]
        scales = self.rng.uniform(0.5, 1.5, count) * 2 / (127 * np.sqrt(np.prod(shape) / count))
        values, bias = self.rng.integers(-127, 128, shape), self.rng.integers(-(2**16), 2**16, count)
        by, by_sum = (tuple(float(s * factor) for s in scales) for factor in (1, STEP))
        return [
            self.constant(f"w{self.count}", values.astype(np.int8), Quantization(by, (0,) * count, axis)),
            self.constant(f"b{self.count}", bias, Quantization(by_sum, (0,) * count)),
        ]

    def conv(self, x: int, kernel: Shape, rows: int, stride: int = 1, activation: int = RELU6) -> int:
        option = options_of("Conv2D", SAME, stride, stride, activation, 1, 1, INT64)
        return self.node(KIND.CONV_2D, [x, *self.weights(kernel)], (1, rows, rows, kernel[0]), *option)

    def depthwise(self, x: int, channels: int, rows: int, stride: int = 1) -> int:
        option = options_of("DepthwiseConv2D", SAME, stride, stride, 1, RELU, 1, 1)
        inputs = [x, *self.weights((1, 3, 3, channels), 3)]
        return self.node(KIND.DEPTHWISE_CONV_2D, inputs, (1, rows, rows, channels), *option)


def classifier(seed: int) -> bytes:
    """Residual blocks, one with squeeze and excitation, a pool, a decoder's layer, and a softmax; f32 at both ends."""
    net = Network(seed)
    axes, pool = net.constant("axes", i32([1, 2])), options_of("Pool2D", VALID, 2, 2, 2, 2, 0)
    image = net.tensor("image", (1, 33, 33, 3), np.float32)
    x = net.conv(net.node(KIND.QUANTIZE, [image], (1, 33, 33, 3)), (21, 3, 3, 3), 17, 2)
    y = net.depthwise(net.conv(x, (40, 1, 1, 21), 17), 40, 17)
    y = net.conv(y, (21, 1, 1, 40), 17, activation=0)
    x = net.node(KIND.ADD, [x, y], (1, 17, 17, 21), *options_of("Add"))
    x = net.conv(net.depthwise(x, 21, 9, 2), (64, 3, 3, 21), 9)
    mean = net.node(KIND.MEAN, [x, axes], (1, 1, 1, 64), *options_of("Reducer", 1))
    gate = net.conv(mean, (64, 1, 1, 64), 1, activation=0)
    gate = net.node(KIND.LOGISTIC, [gate], (1, 1, 1, 64), scale=OF_ONE)
    x = net.node(KIND.MUL, [x, gate], (1, 9, 9, 64), *options_of("Mul"))
    small = net.node(KIND.MAX_POOL_2D, [x], (1, 4, 4, 64), *pool)
    weight, bias = net.weights((16, 3, 3, 64))
    how = options_of("TransposeConv", SAME, 2, 2, 0, INT64)
    up = net.node(
        KIND.TRANSPOSE_CONV, [net.constant("s", i32([1, 8, 8, 16])), weight, small, bias], (1, 8, 8, 16), *how
    )
    up = net.node(KIND.AVERAGE_POOL_2D, [up], (1, 4, 4, 16), *pool)
    x = net.node(KIND.CONCATENATION, [small, up], (1, 4, 4, 80), *options_of("Concatenation", 3, 0))
    x = net.node(KIND.TANH, [net.conv(x, (50, 3, 3, 80), 4, activation=0)], (1, 4, 4, 50), scale=OF_ONE)
    x = net.node(KIND.MEAN, [x, axes], (1, 50), *options_of("Reducer", 0))
    how = options_of("FullyConnected", 0, 0, 0, 0, INT64)
    x = net.node(KIND.FULLY_CONNECTED, [x, *net.weights((10, 50))], (1, 10), *how)
    x = net.node(KIND.SOFTMAX, [x], (1, 10), *options_of("Softmax", 1.0), scale=OF_ONE)
    result = net.tensor("classes", (1, 10), np.float32)
    net.operator(KIND.DEQUANTIZE, [x], result)
    return net.finish([image], [result])


@pytest.mark.parametrize("seed", [0, 1])
def test_a_network_equals_the_reference_kernels(seed: int) -> None:
    content = classifier(seed)
    image = np.random.default_rng(seed).normal(size=(1, 33, 33, 3)).astype(np.float32)
    (wanted,) = reference(content, [image])
    assert np.unique(wanted).size > 3
    module = import_tflite(content)
    np.testing.assert_array_equal(interpreter.run(module, [image])[0], wanted)
    for name in dict.fromkeys((targets.host().name, "generic")):
        np.testing.assert_array_equal(compile_module(module, target=name)(image), wanted)
    np.testing.assert_array_equal(compile_module(module, threads=2)(image), wanted)
