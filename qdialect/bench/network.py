"""Quantized networks as plain data, from which model files of every format are written.

Layout is NCHW. Data is uint8 with one scale and zero point, weights are int8 with a scale for each output channel,
biases int32 at the product of both scales.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math import QuantParams

Clamp = Literal["none", "relu", "relu6"]
ActivationKind = Literal["leaky_relu", "hardswish", "swish"]

LEAKY_SLOPE = 0.01


@dataclass(frozen=True)
class QuantizedTensor:
    """A tensor of uint8 quantized values, whose scale is a float32 number."""

    name: str
    shape: tuple[int, ...]
    params: QuantParams


@dataclass(frozen=True, eq=False)
class Weights:
    """What a contraction multiplies with and adds: int8 [outputs, ...], float32 [outputs], int32 [outputs]."""

    values: NDArray[np.int8]
    scales: NDArray[np.float32]
    bias: NDArray[np.int32]

    def bias_scales(self, source: QuantizedTensor) -> NDArray[np.float32]:
        """Scale of each bias, for data like `source`."""
        return (np.float32(source.params.scale) * self.scales).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Convolution:
    """A convolution with its requantization; weights are OIHW, `padding` is top, left, bottom, right.

    Where `groups` is not 1 it is the number of channels.
    """

    source: QuantizedTensor
    result: QuantizedTensor
    weights: Weights
    stride: int
    padding: tuple[int, int, int, int]
    groups: int
    clamp: Clamp

    @property
    def macs(self) -> int:
        """Multiply-accumulates, those with padding included."""
        return math.prod(self.result.shape) * math.prod(self.weights.values.shape[1:])


@dataclass(frozen=True, eq=False)
class Dense:
    """A product with a matrix [outputs, inputs], and its requantization."""

    source: QuantizedTensor
    result: QuantizedTensor
    weights: Weights

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return math.prod(self.result.shape) * self.weights.values.shape[1]


@dataclass(frozen=True)
class Activation:
    """A function of each quantized value, with a rounding of its own."""

    source: QuantizedTensor
    result: QuantizedTensor
    kind: ActivationKind
    macs: int = 0


@dataclass(frozen=True)
class Sum:
    """The sum of two tensors, clamped at zero."""

    source: QuantizedTensor
    other: QuantizedTensor
    result: QuantizedTensor
    macs: int = 0


@dataclass(frozen=True)
class MaxPool:
    """The largest value of each window; scale and zero point stay."""

    source: QuantizedTensor
    result: QuantizedTensor
    window: int
    stride: int
    padding: int
    macs: int = 0


@dataclass(frozen=True)
class Mean:
    """The mean over height and width, which stay as extents of 1."""

    source: QuantizedTensor
    result: QuantizedTensor
    macs: int = 0


@dataclass(frozen=True)
class Flatten:
    """All axes but the first as one; scale and zero point stay."""

    source: QuantizedTensor
    result: QuantizedTensor
    macs: int = 0


Node = Convolution | Dense | Activation | Sum | MaxPool | Mean | Flatten


@dataclass(frozen=True)
class Network:
    """Nodes in the order they are computed; the first reads the input, the last gives the output."""

    nodes: tuple[Node, ...]

    @property
    def input(self) -> QuantizedTensor:
        """What the caller gives."""
        return self.nodes[0].source

    @property
    def output(self) -> QuantizedTensor:
        """What the caller gets."""
        return self.nodes[-1].result

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all convolutions and products."""
        return sum(node.macs for node in self.nodes)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights and biases, as a model file holds them."""
        weights = [node.weights for node in self.nodes if isinstance(node, Convolution | Dense)]
        return sum(w.values.nbytes + w.bias.nbytes for w in weights)

    @property
    def bytes_moved(self) -> int:
        """Bytes that a call must read and write at least once: input, weights, biases, output."""
        return math.prod(self.input.shape) + self.weight_bytes + math.prod(self.output.shape)
