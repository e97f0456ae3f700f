"""Whole networks with random weights: MobileNetV1-0.25, ResNet-18 and ResNet-50.

The ranges of all tensors come from running one image through the network while it is drawn, in quantized arithmetic; so
nothing saturates more than a real network does, and the right answer is there when the network is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import QuantParams
from qdialect.bench import network as nn
from qdialect.support.interface import Array

Padding = tuple[int, int, int, int]

_CLASSES = 1000
_BLOCK = 8
_INPUT = QuantParams(float(np.float32(1 / 57)), 114)
# Of a thousand numbers, one may lie outside the range on each side.
_TAIL = 0.1
# Channels (at width 1) and stride of each pair of a depthwise and a pointwise convolution.
_MOBILE_BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
_MOBILE_FIRST = 8
_MOBILE_DIVISOR = 4
_STAGES_18 = ((64, 1, 2), (128, 2, 2), (256, 2, 2), (512, 2, 2))
_STAGES_50 = ((64, 1, 3), (128, 2, 4), (256, 2, 6), (512, 2, 3))
_EXPANSION = 4
# The padding of a stride of two on an even extent, so that its window starts at the image's edge.
_AFTER = (0, 0, 1, 1)


class Drawing:
    """The nodes drawn so far, and what one image has become."""

    def __init__(self, seed: int, size: int) -> None:
        self._random = np.random.default_rng(seed)
        self._nodes: list[nn.Node] = []
        # Patches, because in white noise neighbouring pixels have nothing in common.
        extent = size // _BLOCK
        patches = self._random.integers(0, 256, (1, 3, extent, extent), dtype=np.uint8)
        self.image: NDArray[np.uint8] = patches.repeat(_BLOCK, axis=2).repeat(_BLOCK, axis=3)
        self.input: nn.QuantizedTensor = nn.QuantizedTensor("x", self.image.shape, _INPUT)
        self._values: dict[str, Array] = {self.input.name: self.image}

    def finish(self) -> tuple[nn.Network, NDArray[np.uint8], Array]:
        """The network, an image, and the right answer for it."""
        network = nn.Network(tuple(self._nodes))
        return network, self.image, self._values[network.output.name]

    def convolution(
        self,
        source: nn.QuantizedTensor,
        channels: int,
        window: int,
        stride: int,
        padding: Padding,
        clamp: nn.Clamp,
        *,
        depthwise: bool = False,
    ) -> nn.QuantizedTensor:
        """Add a convolution; with `depthwise` its channels are those of `source`."""
        groups = source.shape[1] if depthwise else 1
        weights = self._weights(source, (channels, source.shape[1] // groups, window, window))
        sums = nn.convolve(source, self._values[source.name], weights, stride, padding, groups)
        to = self._range(_f32(sums, source, weights), clamp)
        node = nn.Convolution(source, to, weights, stride, padding, groups, clamp)
        return self._add(node)

    def sum(self, source: nn.QuantizedTensor, other: nn.QuantizedTensor) -> nn.QuantizedTensor:
        total = nn.dequantize(self._values[source.name], source) + nn.dequantize(self._values[other.name], other)
        return self._add(nn.Sum(source, other, self._range(total, "relu")))

    def max_pool(self, source: nn.QuantizedTensor, window: int, stride: int, padding: int) -> nn.QuantizedTensor:
        extent = (source.shape[2] + 2 * padding - window) // stride + 1
        to = replace(source, name=self._name(), shape=(*source.shape[:2], extent, extent))
        return self._add(nn.MaxPool(source, to, window, stride, padding))

    def head(self, source: nn.QuantizedTensor) -> None:
        """Add the mean over the image and the classes."""
        means = nn.dequantize(self._values[source.name], source).mean(axis=(2, 3), keepdims=True)
        pooled = self._add(nn.Mean(source, self._range(means, "none")))
        flat = self._add(nn.Flatten(pooled, replace(pooled, name=self._name(), shape=pooled.shape[:2])))
        weights = self._weights(flat, (_CLASSES, flat.shape[1]), gain=1)
        sums = nn.multiply(flat, self._values[flat.name], weights)
        self._add(nn.Dense(flat, self._range(_f32(sums, flat, weights), "none"), weights))

    def _weights(self, source: nn.QuantizedTensor, shape: tuple[int, ...], gain: float = 2) -> nn.Weights:
        depth = math.prod(shape[1:])
        f32 = self._random.standard_normal(shape) * math.sqrt(gain / depth)
        scales = (np.abs(f32).reshape(shape[0], -1).max(axis=1) / 127).astype(np.float32)
        columns = scales.reshape(-1, *[1] * (len(shape) - 1))
        values = np.clip(np.rint(f32 / columns), -127, 127).astype(np.int8)
        bias = self._random.standard_normal(shape[0]) * 0.05
        return nn.Weights(values, scales, np.rint(bias / (source.params.scale * scales)).astype(np.int32))

    def _range(self, f32: Array, clamp: nn.Clamp) -> nn.QuantizedTensor:
        """Quantized values that hold nearly all of `f32`, after `clamp`."""
        low, high = (float(np.percentile(f32, percent)) for percent in (_TAIL, 100 - _TAIL))
        match clamp:
            case "none":
                low = min(low, 0.0)
            case "relu":
                low = 0.0
            case "relu6":
                low, high = 0.0, min(high, 6.0)
        scale = float(np.float32((max(high, 1e-3) - low) / 255))
        return nn.QuantizedTensor(self._name(), f32.shape, QuantParams(scale, round(-low / scale)))

    def _add(self, node: nn.Node) -> nn.QuantizedTensor:
        sources = (node.source, node.other) if isinstance(node, nn.Sum) else (node.source,)
        self._values[node.result.name] = nn.result(node, *(self._values[source.name] for source in sources))
        self._nodes.append(node)
        return node.result

    def _name(self) -> str:
        return f"t{len(self._nodes)}"


def _f32(sums: NDArray[np.float64], source: nn.QuantizedTensor, weights: nn.Weights) -> NDArray[np.float64]:
    """The f32 values of sums of products of quantized values; channels are axis 1."""
    return sums * weights.bias_scales(source).reshape(1, -1, *[1] * (sums.ndim - 2))


def _mobilenet(drawing: Drawing) -> nn.QuantizedTensor:
    value = drawing.convolution(drawing.input, _MOBILE_FIRST, 3, 2, _AFTER, "relu6")
    for channels, stride in _MOBILE_BLOCKS:
        padding = (1, 1, 1, 1) if stride == 1 else _AFTER
        value = drawing.convolution(value, value.shape[1], 3, stride, padding, "relu6", depthwise=True)
        value = drawing.convolution(value, channels // _MOBILE_DIVISOR, 1, 1, (0, 0, 0, 0), "relu6")
    return value


def _resnet(
    drawing: Drawing, block: Callable[[Drawing, nn.QuantizedTensor, int, int], nn.QuantizedTensor], stages: Any
) -> nn.QuantizedTensor:
    value = drawing.convolution(drawing.input, 64, 7, 2, (3, 3, 3, 3), "relu")
    value = drawing.max_pool(value, 3, 2, 1)
    for channels, first_stride, count in stages:
        for index in range(count):
            value = block(drawing, value, channels, first_stride if index == 0 else 1)
    return value


def _basic_block(drawing: Drawing, source: nn.QuantizedTensor, channels: int, stride: int) -> nn.QuantizedTensor:
    value = drawing.convolution(source, channels, 3, stride, (1, 1, 1, 1), "relu")
    value = drawing.convolution(value, channels, 3, 1, (1, 1, 1, 1), "none")
    return drawing.sum(value, _shortcut(drawing, source, channels, stride))


def _bottleneck(drawing: Drawing, source: nn.QuantizedTensor, channels: int, stride: int) -> nn.QuantizedTensor:
    value = drawing.convolution(source, channels, 1, 1, (0, 0, 0, 0), "relu")
    value = drawing.convolution(value, channels, 3, stride, (1, 1, 1, 1), "relu")
    value = drawing.convolution(value, channels * _EXPANSION, 1, 1, (0, 0, 0, 0), "none")
    return drawing.sum(value, _shortcut(drawing, source, channels * _EXPANSION, stride))


def _shortcut(drawing: Drawing, source: nn.QuantizedTensor, channels: int, stride: int) -> nn.QuantizedTensor:
    if stride == 1 and source.shape[1] == channels:
        return source
    return drawing.convolution(source, channels, 1, stride, (0, 0, 0, 0), "none")


RANDOM_NETWORKS: Mapping[str, tuple[str, int, Callable[[Drawing], nn.QuantizedTensor]]] = {
    "mobilenet_v1_025": ("MobileNetV1-0.25, random weights", 7, _mobilenet),
    "resnet18": ("ResNet-18, random weights", 8, lambda drawing: _resnet(drawing, _basic_block, _STAGES_18)),
    "resnet50": ("ResNet-50, random weights", 9, lambda drawing: _resnet(drawing, _bottleneck, _STAGES_50)),
}
"""By name: a description, the seed, and the function that draws it up to the mean over the image."""


def draw_network(name: str, size: int = 224) -> tuple[nn.Network, NDArray[np.uint8], Array]:
    """A network of `RANDOM_NETWORKS` for images of this height and width, one of them, and the right answer for it."""
    _, seed, body = RANDOM_NETWORKS[name]
    drawing = Drawing(seed, size)
    drawing.head(body(drawing))
    return drawing.finish()
