"""The single layers that are measured, by name, and networks of one layer with seeded numbers."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from qdialect.bench.network import (
    Activation,
    ActivationKind,
    Clamp,
    Convolution,
    Dense,
    Network,
    Node,
    QuantizedTensor,
    Weights,
)
from qdialect.quant_math import QuantParams

# Standard deviation of a convolution's f32 result, and the largest f32 value that its quantized values represent.
_SPREAD = 3.0
_LARGEST = 10.0
_INPUT_ZERO_POINT = 117
_RESULT_ZERO_POINT = 121
# Standard deviation of uniform int8 weights and of uniform uint8 data, and the mean weight scale.
_UNIFORM = 73.5
_WEIGHT_SCALE = 0.003
# The smallest value of each activation.
_LOWEST: Mapping[ActivationKind, float] = {"leaky_relu": -0.1, "hardswish": -0.375, "swish": -0.2785}


@dataclass(frozen=True)
class ConvolutionLayer:
    """A convolution of stride 1 on [batch, channels, height, width], with what follows it."""

    batch: int
    channels: int
    height: int
    width: int
    outputs: int
    window: tuple[int, int]
    padding: int = 0
    is_depthwise: bool = False
    activation: ActivationKind | Clamp = "none"

    @property
    def text(self) -> str:
        """The layer in a few words."""
        kind = "depthwise" if self.is_depthwise else "convolution"
        window = "x".join(map(str, self.window))
        return f"{kind} {window}, {self.shape_text} -> {self.outputs} channels{_tail(self.activation)}"

    @property
    def shape_text(self) -> str:
        """The input's extents, N C H W."""
        return f"{self.batch}x{self.channels}x{self.height}x{self.width}"


@dataclass(frozen=True)
class DenseLayer:
    """A product of [rows, depth] with a matrix of as many columns."""

    rows: int
    depth: int
    columns: int

    @property
    def text(self) -> str:
        """The layer in a few words."""
        return f"dense, M {self.rows}, K {self.depth}, N {self.columns}"


Layer = ConvolutionLayer | DenseLayer

_W1 = ConvolutionLayer(16, 4, 640, 64, 128, (4, 64), activation="leaky_relu")
_W2 = replace(_W1, window=(2, 64), activation="hardswish")
_W3 = replace(_W2, activation="swish")
_W4 = ConvolutionLayer(1, 128, 28, 28, 128, (3, 3), padding=1, activation="relu")
_W5 = ConvolutionLayer(1, 256, 56, 56, 64, (1, 1), activation="hardswish")
_W6 = ConvolutionLayer(1, 256, 14, 14, 256, (3, 3), padding=1, is_depthwise=True, activation="relu6")

LAYERS: Mapping[str, Layer] = {
    "W1": _W1,
    "W2": _W2,
    "W3": _W3,
    "W4": _W4,
    "W5": _W5,
    "W6": _W6,
    "W7a": DenseLayer(1, 2048, 1000),
    "W7b": DenseLayer(128, 1024, 1024),
    # The window spans the width, so width and channels can be written as channels alone.
    "W1r": replace(_W1, channels=256, width=1, window=(4, 1)),
    "W2r": replace(_W2, channels=256, width=1, window=(2, 1)),
}
"""What is measured by default."""

VARIATIONS: Mapping[str, Layer] = {
    # The batch that the layers were first described with.
    "W1_N128": replace(_W1, batch=128),
    "W2_N128": replace(_W2, batch=128),
    "W3_N128": replace(_W3, batch=128),
    # Without the activation: what it costs.
    "W1_noact": replace(_W1, activation="none"),
    "W2_noact": replace(_W2, activation="none"),
    "W5_noact": replace(_W5, activation="none"),
}
"""What is measured when it is named."""

CHAINS: Mapping[str, tuple[str, int]] = {"W4x8": ("W4", 8), "W6x32": ("W6", 32)}
"""Networks of equal layers, each reading the one before: the layer, and how many."""


def layer_network(name: str, layer: Layer) -> Network:
    """`layer` with numbers of which `name`, up to an underscore, is the seed; results use most of their range."""
    random = _random(name)
    if isinstance(layer, DenseLayer):
        return Network((_dense(layer, random),))
    return Network(_convolution(layer, random))


def chain_network(layer: ConvolutionLayer, count: int, name: str) -> Network:
    """`count` times the convolution `layer`, with other weights each, scaled so that values keep their spread."""
    (first,) = _convolution(layer, _random(name))
    if not isinstance(first, Convolution):
        raise TypeError("a chain is made of convolutions without an activation of their own")
    nodes: list[Node] = [first]
    weights = first.weights
    ratio = np.float32(1.5 * first.source.params.scale / first.result.params.scale)
    scales = (weights.scales * ratio).astype(np.float32)
    bias = np.rint(weights.bias * 0.3).astype(np.int32)
    source = first.result
    for index in range(1, count):
        rolled = Weights(np.roll(weights.values, index, axis=0), scales, bias)
        result = replace(source, name=f"c{index}")
        nodes.append(replace(first, source=source, result=result, weights=rolled))
        source = result
    return Network(tuple(nodes))


def draw_input(network: Network, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Random quantized values; the first images are the same whatever the batch."""
    return _random(f"input of {_seed(name)}").integers(0, 256, network.input.shape, dtype=np.uint8)


def _convolution(layer: ConvolutionLayer, random: np.random.Generator) -> tuple[Node, ...]:
    depth = 1 if layer.is_depthwise else layer.channels
    extents = (layer.batch, layer.channels, layer.height, layer.width)
    source = QuantizedTensor("x", extents, _input(depth * math.prod(layer.window)))
    weights = _weights((layer.outputs, depth, *layer.window), random)
    height = layer.height + 2 * layer.padding - layer.window[0] + 1
    width = layer.width + 2 * layer.padding - layer.window[1] + 1
    shape = (layer.batch, layer.outputs, height, width)
    groups = layer.channels if layer.is_depthwise else 1
    padding = (layer.padding, layer.padding, layer.padding, layer.padding)
    if layer.activation in ("none", "relu", "relu6"):
        result = QuantizedTensor("c0", shape, _range(layer.activation))
        return (Convolution(source, result, weights, 1, padding, groups, layer.activation),)
    middle = QuantizedTensor("c0", shape, _range("none"))
    low = _LOWEST[layer.activation]
    scale = float(np.float32((_LARGEST + 0.5 - low) / 255))
    result = QuantizedTensor("a0", shape, QuantParams(scale, round(-low / scale)))
    return (
        Convolution(source, middle, weights, 1, padding, groups, "none"),
        Activation(middle, result, layer.activation),
    )


def _dense(layer: DenseLayer, random: np.random.Generator) -> Dense:
    source = QuantizedTensor("x", (layer.rows, layer.depth), _input(layer.depth))
    weights = _weights((layer.columns, layer.depth), random)
    return Dense(source, QuantizedTensor("c0", (layer.rows, layer.columns), _range("none")), weights)


def _input(depth: int) -> QuantParams:
    """The parameters with which sums of `depth` products have the spread that is wanted."""
    scale = np.float32(_SPREAD / (math.sqrt(depth) * _UNIFORM**2 * _WEIGHT_SCALE))
    return QuantParams(float(scale), _INPUT_ZERO_POINT)


def _range(clamp: Clamp) -> QuantParams:
    """The parameters of a result; a zero point of 0 makes saturation the clamp at zero."""
    match clamp:
        case "none":
            return QuantParams(float(np.float32(2 * _LARGEST / 255)), _RESULT_ZERO_POINT)
        case "relu":
            return QuantParams(float(np.float32(_LARGEST / 255)), 0)
        case "relu6":
            return QuantParams(float(np.float32(6 / 255)), 0)


def _weights(shape: tuple[int, ...], random: np.random.Generator) -> Weights:
    depth = math.prod(shape[1:])
    values = random.integers(-127, 128, shape).astype(np.int8)
    scales = (2 / 3 * _WEIGHT_SCALE * (1 + random.random(shape[0]))).astype(np.float32)
    # Some thirty typical products.
    bias = np.rint(random.standard_normal(shape[0]) * math.sqrt(depth) * _UNIFORM * 30).astype(np.int32)
    return Weights(values, scales, bias)


def _random(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(_seed(name).encode()))


def _seed(name: str) -> str:
    return name.split("_")[0]


def _tail(activation: ActivationKind | Clamp) -> str:
    return "" if activation == "none" else f", {activation}"
