"""Quantized networks as plain data, from which model files of every format are written, and their results in NumPy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, assert_never

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from qdialect.arithmetic import QuantParams
from qdialect.support.interface import Array

# Layout is NCHW. Data is uint8 with one scale and zero point, weights are int8 with a scale for each output channel,
# biases int32 at the product of both scales.

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
    """Weights, scales and bias of a contraction: int8 [outputs, ...], float32 [outputs], int32 [outputs]."""

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


@dataclass(frozen=True, eq=False)
class Dense:
    """A product with a matrix [outputs, inputs], and its requantization."""

    source: QuantizedTensor
    result: QuantizedTensor
    weights: Weights


@dataclass(frozen=True)
class Activation:
    """A function of each quantized value, with a rounding of its own."""

    source: QuantizedTensor
    result: QuantizedTensor
    kind: ActivationKind


@dataclass(frozen=True)
class Sum:
    """The sum of two tensors, clamped at zero."""

    source: QuantizedTensor
    other: QuantizedTensor
    result: QuantizedTensor


@dataclass(frozen=True)
class MaxPool:
    """The largest value of each window; scale and zero point stay."""

    source: QuantizedTensor
    result: QuantizedTensor
    window: int
    stride: int
    padding: int


@dataclass(frozen=True)
class Mean:
    """The mean over height and width, which stay as extents of 1."""

    source: QuantizedTensor
    result: QuantizedTensor


@dataclass(frozen=True)
class Flatten:
    """All axes but the first as one; scale and zero point stay."""

    source: QuantizedTensor
    result: QuantizedTensor


Node = Convolution | Dense | Activation | Sum | MaxPool | Mean | Flatten


@dataclass(frozen=True)
class Network:
    """Nodes in the order they are computed; the first reads the input, the last gives the output."""

    nodes: tuple[Node, ...]

    @property
    def input(self) -> QuantizedTensor:
        return self.nodes[0].source

    @property
    def output(self) -> QuantizedTensor:
        return self.nodes[-1].result

    @property
    def _contractions(self) -> list[Convolution | Dense]:
        return [node for node in self.nodes if isinstance(node, Convolution | Dense)]

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all convolutions and products, those with padding included."""
        return sum(math.prod(n.result.shape) * math.prod(n.weights.values.shape[1:]) for n in self._contractions)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights and biases, as a model file holds them."""
        return sum(node.weights.values.nbytes + node.weights.bias.nbytes for node in self._contractions)

    @property
    def bytes_moved(self) -> int:
        """Bytes that a call must read and write at least once: input, weights, biases, output."""
        return math.prod(self.input.shape) + self.weight_bytes + math.prod(self.output.shape)


# The results of a `Network` in NumPy: exact sums, then one rounding half to even for every tensor that is stored.

F32Values = NDArray[np.float64]


def evaluate(network: Network, data: Array) -> NDArray[np.uint8]:
    """The output's quantized values for the input quantized values `data`."""
    values: dict[str, Array] = {network.input.name: data}
    for node in network.nodes:
        sources = (node.source, node.other) if isinstance(node, Sum) else (node.source,)
        values[node.result.name] = result(node, *(values[source.name] for source in sources))
    return values[network.output.name]


def result(node: Node, *data: Array) -> Array:
    """The quantized values that `node` gives for the quantized values `data` of its sources."""
    match node:
        case Convolution():
            sums = convolve(node.source, data[0], node.weights, node.stride, node.padding, node.groups)
            return requantize(sums, node)
        case Dense():
            return requantize(multiply(node.source, data[0], node.weights), node)
        case Activation():
            table = quantize(activate(node.kind, dequantize(np.arange(256), node.source)), node.result)
            return table[data[0]]
        case Sum():
            return _sum(node, data[0], data[1])
        case MaxPool():
            return _max_pool(node, data[0])
        case Mean():
            return quantize(dequantize(data[0], node.source).mean(axis=(2, 3), keepdims=True), node.result)
        case Flatten():
            return data[0].reshape(node.result.shape)
        case _:
            assert_never(node)


def quantize(f32: F32Values, to: QuantizedTensor) -> NDArray[np.uint8]:
    """Quantized values of f32 values: clamp(round_half_even(f32 / scale) + zero_point, 0, 255)."""
    return np.clip(np.rint(f32 / to.params.scale) + to.params.zero_point, 0, 255).astype(np.uint8)


def dequantize(values: Array, by: QuantizedTensor) -> F32Values:
    """f32 values of quantized values: scale * (value - zero_point)."""
    return (values.astype(np.float64) - by.params.zero_point) * by.params.scale


def requantize(sums: F32Values, node: Convolution | Dense) -> NDArray[np.uint8]:
    """Quantized values of sums of products; channels are axis 1.

    clamp(round_half_even(sum * m) + zero_point, 0, 255) with m = source.scale * weight scale / result.scale, all in
    float32: the arithmetic of ONNX Runtime's QLinearConv and QGemm.
    """
    shape = (1, -1) + (1,) * (sums.ndim - 2)
    multipliers = node.weights.bias_scales(node.source) / np.float32(node.result.params.scale)
    scaled = sums.astype(np.float32) * multipliers.reshape(shape)
    return np.clip(np.rint(scaled) + node.result.params.zero_point, 0, 255).astype(np.uint8)


def activate(kind: ActivationKind, f32: F32Values) -> F32Values:
    """leaky_relu: x or slope * x; hardswish: x * clamp(x + 3, 0, 6) / 6; swish: x / (1 + e^-x)."""
    match kind:
        case "leaky_relu":
            return np.where(f32 >= 0, f32, LEAKY_SLOPE * f32)
        case "hardswish":
            return f32 * np.clip(f32 + 3, 0, 6) / 6
        case "swish":
            return f32 / (1 + np.exp(-f32))


def multiply(source: QuantizedTensor, data: Array, weights: Weights) -> F32Values:
    """Sums of products [rows, outputs], bias included; a float64 sum of integers is exact below 2^53."""
    return (data.astype(np.float64) - source.params.zero_point) @ weights.values.T.astype(np.float64) + weights.bias


def convolve(
    source: QuantizedTensor, data: Array, weights: Weights, stride: int, padding: tuple[int, int, int, int], groups: int
) -> F32Values:
    """Sums of products [N, outputs, H, W], bias included; padding counts as the f32 value zero."""
    top, left, bottom, right = padding
    shifted = data.astype(np.float64) - source.params.zero_point
    padded = np.pad(shifted, ((0, 0), (0, 0), (top, bottom), (left, right)))
    kernel = weights.values.astype(np.float64)
    windows = sliding_window_view(padded, kernel.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    if groups > 1:
        sums = np.einsum("ncyxij,cij->ncyx", windows, kernel[:, 0])
    else:
        sums = np.stack([_one_image(image, kernel) for image in windows])
    return sums + weights.bias.reshape(1, -1, 1, 1)


def _one_image(windows: F32Values, kernel: F32Values) -> F32Values:
    """Windows [C, H, W, KH, KW] with OIHW weights; one image at a time, because the matrix of windows is large."""
    height, width = windows.shape[1:3]
    rows = windows.transpose(1, 2, 0, 3, 4).reshape(height * width, -1)
    return (kernel.reshape(kernel.shape[0], -1) @ rows.T).reshape(-1, height, width)


def _sum(node: Sum, left: Array, right: Array) -> NDArray[np.uint8]:
    """Quantized values of left * r_l + (right * r_r + k), r = scale / result scale and k = z - (r_l * z_l + r_r * z_r).

    All in float32 with multiply-adds that round once: the arithmetic of ONNX Runtime's QLinearAdd. The clamp at zero is
    that of the quantized values, whose zero point is 0.
    """
    scale = np.float32(node.result.params.scale)
    left_ratio, right_ratio = (np.float32(tensor.params.scale) / scale for tensor in (node.source, node.other))
    shift = np.float32(right_ratio * np.float32(node.other.params.zero_point))
    constant = np.float32(node.result.params.zero_point) - _multiply_add(
        np.uint8(node.source.params.zero_point), left_ratio, shift
    )
    scaled = _multiply_add(left, left_ratio, _multiply_add(right, right_ratio, constant))
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)


def _multiply_add(values: Array | np.uint8, ratio: np.float32, addend: Array | np.float32) -> Any:
    """quantized values * ratio + addend with one rounding; in float64 the product of a quantized value is exact."""
    return np.asarray(np.float64(ratio) * values + np.float64(addend), np.float32)


def _max_pool(node: MaxPool, data: Array) -> Array:
    edge = (node.padding, node.padding)
    padded = np.pad(data, ((0, 0), (0, 0), edge, edge))
    windows = sliding_window_view(padded, (node.window, node.window), axis=(2, 3))
    return windows[:, :, :: node.stride, :: node.stride].max(axis=(4, 5))
