"""A MobileNet V1 0.25 with seeded weights, for machines that have no real one."""

from pathlib import Path
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray

from qdialect.arithmetic.convolution import conv2d_accumulate
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization, options
from qdialect.frontends.tflite.operators.checks import WindowOptions

# Output channels and stride of each pair of a depthwise and a pointwise convolution, at width 0.25.
_BLOCKS = (
    (16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1),
    (128, 1), (128, 1), (128, 1), (128, 1), (256, 2), (256, 1),
)  # fmt: skip
_FIRST_CHANNELS = 8
_CLASSES = 1001
_TOTAL_STRIDE = 32
_WEIGHT_ZERO_POINT = 128
# Activations in [0, 6], as ReLU6 gives them.
_ACTIVATION = Quantization((6 / 255,), (0,))
_INPUT = Quantization((1 / 128,), (128,))
_LOGITS = Quantization((8 / 165,), (90,))
_PROBABILITIES = Quantization((1 / 256,), (0,))
# Share of the accumulators that may saturate, so that the rest uses the whole range of quantized values.
_PERCENTILE = 99.5


def write_mobilenet(path: str | Path, seed: int = 0, size: int = 224) -> None:
    """Write the model to `path`; the same `seed` and `size` give the same bytes.

    uint8 data of shape [1, `size`, `size`, 3], weights with one scale and a zero point, 1001 classes: the layers of the
    network that is known by this name, with random weights.  Their scales come from running a random image through the
    layers, so that every activation uses its range.

    Raises `ValueError` where `size` is no positive multiple of 32.
    """
    if size < _TOTAL_STRIDE or size % _TOTAL_STRIDE:
        raise ValueError(f"size must be a positive multiple of {_TOTAL_STRIDE}, but got {size}")
    Path(path).write_bytes(_Network(seed, size).content())


def _quantize(values: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


class _Network:
    """The layers written so far, with the quantized values that a random image has after them."""

    def __init__(self, seed: int, size: int) -> None:
        self._random = np.random.default_rng(seed)
        self._writer = ModelWriter(f"MobileNet V1 0.25, {size}x{size}, random weights of seed {seed}")
        self._input = self._writer.tensor("input", (1, size, size, 3), np.uint8, _INPUT)
        self._tensor, self._quantization = self._input, _INPUT
        self._image: NDArray[np.uint8] = self._random.integers(0, 256, (1, size, size, 3), dtype=np.uint8)

    def content(self) -> bytes:
        self._convolution("Conv2d_0", _FIRST_CHANNELS, 3, 2, _ACTIVATION)
        for number, (channels, stride) in enumerate(_BLOCKS, start=1):
            self._depthwise(f"Conv2d_{number}_depthwise", stride)
            self._convolution(f"Conv2d_{number}_pointwise", channels, 1, 1, _ACTIVATION)
        self._average_pool()
        self._convolution("Logits", _CLASSES, 1, 1, _LOGITS)
        self._reshape_and_softmax()
        return self._writer.finish([self._input], [self._tensor])

    def _convolution(self, name: str, channels: int, kernel: int, stride: int, output: Quantization) -> None:
        weight = self._weight((channels, kernel, kernel, self._image.shape[3]))
        inputs = self._contraction(name, weight, weight, stride, 1, output)
        self._produce(name, output)
        option = options("Conv2DOptions", StrideH=stride, StrideW=stride)
        self._writer.operator(tflite.BuiltinOperator.CONV_2D, inputs, self._tensor, *option)

    def _depthwise(self, name: str, stride: int) -> None:
        channels = self._image.shape[3]
        weight = self._weight((1, 3, 3, channels))
        inputs = self._contraction(name, weight, weight.transpose(3, 1, 2, 0), stride, channels, _ACTIVATION)
        self._produce(name, _ACTIVATION)
        option = options("DepthwiseConv2DOptions", StrideH=stride, StrideW=stride, DepthMultiplier=1)
        self._writer.operator(tflite.BuiltinOperator.DEPTHWISE_CONV_2D, inputs, self._tensor, *option)

    def _weight(self, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        return _quantize(self._random.normal(_WEIGHT_ZERO_POINT, 36, shape))

    def _contraction(
        self,
        name: str,
        weight: NDArray[np.uint8],
        channels_first: NDArray[np.uint8],
        stride: int,
        groups: int,
        output: Quantization,
    ) -> tuple[int, int, int]:
        """Add weight and bias of a layer and compute its quantized values; the inputs of its node.

        The weight's scale is chosen for the accumulators to fill the range of `output`.
        """
        window, strides = (channels_first.shape[1], channels_first.shape[2]), (stride, stride)
        size = (self._image.shape[1], self._image.shape[2])
        options = WindowOptions(tflite.Padding.SAME, tflite.ActivationFunctionType.NONE, strides)
        top, left, bottom, right = options.explicit(size, window)
        padding = (top, left, bottom, right)
        zero_point, maximum = output.zero_points[0], 255 - output.zero_points[0]
        parameters = (self._quantization.zero_points[0], [_WEIGHT_ZERO_POINT], strides, padding, (1, 1), groups)
        acc = conv2d_accumulate(self._image, channels_first, *parameters)
        spread = float(np.std(acc.astype(np.float64)))
        bias = self._random.normal(0.3 * spread, 0.5 * spread, (channels_first.shape[0],)).astype(np.int32)
        acc += bias
        kernel_extent = max(float(np.percentile(np.abs(acc), _PERCENTILE)), 1.0)
        self._image = _quantize(acc * (maximum / kernel_extent) + zero_point)
        weight_scale = output.scales[0] * maximum / (kernel_extent * self._quantization.scales[0])
        product = float(np.float32(self._quantization.scales[0]) * np.float32(weight_scale))
        quantization = Quantization((weight_scale,), (_WEIGHT_ZERO_POINT,))
        weight_index = self._writer.constant(f"{name}/weights", weight, quantization)
        bias_index = self._writer.constant(f"{name}/bias", bias, Quantization((product,), (0,)))
        return self._tensor, weight_index, bias_index

    def _produce(self, name: str, quantization: Quantization) -> None:
        self._tensor = self._writer.tensor(name, self._image.shape, np.uint8, quantization)
        self._quantization = quantization

    def _average_pool(self) -> None:
        source, height, width = self._tensor, self._image.shape[1], self._image.shape[2]
        window = {"Padding": tflite.Padding.VALID, "StrideH": 1, "StrideW": 1}
        option = options("Pool2DOptions", **window, FilterHeight=height, FilterWidth=width)
        self._image = _quantize(self._image.mean(axis=(1, 2), keepdims=True))
        self._produce("AvgPool", self._quantization)
        self._writer.operator(tflite.BuiltinOperator.AVERAGE_POOL_2D, [source], self._tensor, *option)

    def _reshape_and_softmax(self) -> None:
        source, self._image = self._tensor, self._image.reshape(1, _CLASSES)
        self._produce("SpatialSqueeze", self._quantization)
        shape = self._writer.constant("SpatialSqueeze/shape", np.array([1, _CLASSES], dtype=np.int32))
        self._writer.operator(tflite.BuiltinOperator.RESHAPE, [source, shape], self._tensor)
        source = self._tensor
        self._produce("Softmax", _PROBABILITIES)
        option = options("SoftmaxOptions", Beta=1.0)
        self._writer.operator(tflite.BuiltinOperator.SOFTMAX, [source], self._tensor, *option)
