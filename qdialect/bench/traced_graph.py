"""ONNX graphs that are computed in float64 while they are written: the range of each tensor is that of its own values.

So a quantized network needs neither calibration data nor another program for its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import QuantParams
from qdialect.bench.float_functions import EPSILON, erf, normalized, softmax
from qdialect.bench.onnx_writer import GraphWriter, Port
from qdialect.support.interface import Array

_LEVELS = 255
_LARGEST_WEIGHT = 127
_MIDDLE = 8
"""The stored number of 0 in a weight of 4 bits."""
_FLOAT = 1
"""ONNX's number of the element type float32."""


@dataclass(frozen=True, eq=False)
class Float:
    """A float32 tensor of the graph, with its float64 numbers."""

    name: str
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Quantized:
    """A uint8 tensor of the graph."""

    name: str
    values: NDArray[np.uint8]
    params: QuantParams


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights int8 [inputs, outputs] with a scale for each output, and the bias float32 [outputs]."""

    values: NDArray[np.int8]
    scales: NDArray[np.float32]
    bias: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.bias.nbytes

    def filters(self, channels: int, size: int) -> NDArray[np.int8]:
        """The weights as [outputs, channels, size, size]."""
        filters: NDArray[np.int8] = np.ascontiguousarray(self.values.T)
        return filters.reshape(-1, channels, size, size)


T = TypeVar("T", Float, Quantized)


@dataclass(frozen=True, eq=False)
class BlockWeights:
    """Weights of 4 bits [outputs, inputs], less 8, with a scale for each output and `block` inputs."""

    values: NDArray[np.uint8]
    scales: NDArray[np.float32]
    block: int

    @property
    def nbytes(self) -> int:
        """Bytes in the file: half a byte for each weight, and the scales."""
        return self.values.size // 2 + self.scales.nbytes

    def numbers(self) -> NDArray[np.float32]:
        """Their values, [inputs, outputs]."""
        blocks = self.values.reshape(*self.scales.shape, self.block).astype(np.float32) - _MIDDLE
        numbers: NDArray[np.float32] = (blocks * self.scales[:, :, None]).reshape(self.values.shape).T
        return numbers


class TracedGraph:
    """Writes nodes and computes them; every method that adds one gives its result."""

    def __init__(self) -> None:
        self.writer = GraphWriter()
        self.inputs: list[Float | Quantized] = []
        self.macs = 0
        self.weights: list[Weights | BlockWeights] = []
        self._floats: dict[str, Float] = {}
        self._dynamic: dict[str, list[str]] = {}

    def input(self, name: str, values: NDArray[np.float32]) -> Float:
        self.inputs.append(Float(name, values.astype(np.float64)))
        return Float(name, values.astype(np.float64))

    def quantized_input(self, name: str, values: NDArray[np.float32]) -> Quantized:
        """Add a uint8 input, which stands for `values`."""
        result = _quantized(name, values.astype(np.float64))
        self.inputs.append(result)
        return result

    def quantize(self, source: Float, params: QuantParams | None = None) -> Quantized:
        """A QuantizeLinear for `params`, or for the range of the numbers."""
        result = _quantized("", source.values, params)
        name = self.writer.node("QuantizeLinear", [source.name, *self.writer.parameters(result.params)])
        return Quantized(name, result.values, result.params)

    def dequantize(self, source: Quantized) -> Float:
        """A DequantizeLinear, one for all readers."""
        if source.name not in self._floats:
            params = source.params
            name = self.writer.node("DequantizeLinear", [source.name, *self.writer.parameters(params)])
            values = (source.values.astype(np.float64) - params.zero_point) * params.scale
            self._floats[source.name] = Float(name, values)
        return self._floats[source.name]

    def shaped(self, source: T, shape: Sequence[int], order: Sequence[int]) -> T:
        """`source` with another shape, and its axes then in another `order`."""
        name = self.writer.node("Reshape", [source.name, self.writer.constant(np.array(shape, np.int64))])
        return self.transposed(replace(source, name=name, values=source.values.reshape(shape)), order)

    def transposed(self, source: T, order: Sequence[int]) -> T:
        """`source` with its axes in another `order`; as it is where that is their own."""
        if list(order) == sorted(order):
            return source
        name = self.writer.node("Transpose", [source.name], perm=list(order))
        return replace(source, name=name, values=source.values.transpose(order))

    def concatenated(self, first: T, second: T, axis: int) -> T:
        """Two tensors, of the same scale, one after the other."""
        name = self.writer.node("Concat", [first.name, second.name], axis=axis)
        return replace(first, name=name, values=np.concatenate([first.values, second.values], axis))

    def product(self, left: Float, right: Float) -> Float:
        values = left.values @ right.values
        self.macs += prod(values.shape) * left.values.shape[-1]
        return Float(self.writer.node("MatMul", [left.name, right.name]), values)

    def linear(self, source: Quantized, weights: Weights) -> Float:
        """A Gemm of [rows, inputs] with dequantized weights and an int32 bias."""
        writer, data = self.writer, self.dequantize(source)
        bias_scales = (np.float32(source.params.scale) * weights.scales).astype(np.float32)
        bias = np.rint(weights.bias / bias_scales).astype(np.int32)
        kernel = writer.dequantized(weights.values, weights.scales, 1)
        inputs = [data.name, kernel, writer.dequantized(bias, bias_scales, 0)]
        values = data.values @ (weights.values * weights.scales.astype(np.float64)) + bias * bias_scales.astype(float)
        self._count(len(data.values), weights)
        return Float(writer.node("Gemm", inputs), values)

    def dynamic_linear(self, source: Float, weights: Weights) -> Float:
        """Quantization by the range of [rows, inputs], once for all readers, an integer product, scales and bias."""
        writer = self.writer
        kernel, scales, bias = (writer.constant(array) for array in (weights.values, weights.scales, weights.bias))
        if source.name not in self._dynamic:
            self._dynamic[source.name] = writer.nodes("DynamicQuantizeLinear", [source.name], 3)
        data, scale, zero_point = self._dynamic[source.name]
        product = writer.node("MatMulInteger", [data, kernel, zero_point, writer.constant(np.int8(0))])
        factors = writer.node("Mul", [scale, scales])
        scaled = writer.node("Mul", [writer.node("Cast", [product], to=_FLOAT), factors])
        held = _quantized("", source.values)
        stored = held.values.astype(np.float64) - held.params.zero_point
        values = stored @ weights.values.astype(np.float64) * held.params.scale * weights.scales + weights.bias
        self._count(len(source.values), weights)
        return Float(writer.node("Add", [scaled, bias]), values)

    def block_linear(self, source: Float, weights: BlockWeights, level: int) -> Float:
        """MatMulNBits of [rows, inputs]; a `level` of 4 lets its rows be quantized."""
        writer, (outputs, inputs) = self.writer, weights.values.shape
        pairs = weights.values.reshape(outputs, -1, weights.block // 2, 2)
        packed = (pairs[..., 0] | pairs[..., 1] << 4).astype(np.uint8)
        sizes = {"K": inputs, "N": outputs, "bits": 4, "block_size": weights.block, "accuracy_level": level}
        constants = [writer.constant(array) for array in (packed, weights.scales.reshape(-1))]
        name = writer.node("com.microsoft.MatMulNBits", [source.name, *constants], **sizes)
        self._count(len(source.values), weights)
        # In float32: a network of billions of weights is not computed in float64 within a minute.
        return Float(name, (source.values.astype(np.float32) @ weights.numbers()).astype(np.float64))

    def channel_linear(self, source: Float, weights: Weights) -> Float:
        """A product of floats and of weights that are dequantized."""
        kernel = self.writer.dequantized(weights.values, weights.scales, 1)
        name = self.writer.node("MatMul", [source.name, kernel])
        self._count(len(source.values), weights)
        return Float(name, (source.values @ weights.values.astype(np.float64)) * weights.scales)

    def convolution(self, source: Quantized, weights: Weights, size: int) -> Float:
        """Windows of `size` x `size` pixels that do not overlap: NCHW to [pixels, outputs]; a Conv and transposes."""
        writer, data = self.writer, self.dequantize(source)
        _, channels, height, width = data.values.shape
        outputs = weights.values.shape[1]
        kernel = writer.dequantized(weights.filters(channels, size), weights.scales, 0)
        name = writer.node("Conv", [data.name, kernel], kernel_shape=[size, size], strides=[size, size])
        rows, columns = height // size, width // size
        windows = data.values.reshape(channels, rows, size, columns, size).transpose(1, 3, 0, 2, 4)
        values = windows.reshape(rows * columns, -1) @ (weights.values * weights.scales.astype(np.float64))
        self._count(rows * columns, weights)
        return Float(name, values.T.reshape(1, outputs, rows, columns))

    def _count(self, rows: int, weights: Weights | BlockWeights) -> None:
        self.macs += rows * weights.values.size
        self.weights.append(weights)

    def add(self, left: Float, right: Float) -> Float:
        return Float(self.writer.node("Add", [left.name, right.name]), left.values + right.values)

    def constant(self, values: NDArray[np.float32]) -> Float:
        return Float(self.writer.constant(values), values.astype(np.float64))

    def softmax(self, source: Float) -> Float:
        return Float(self.writer.node("Softmax", [source.name], axis=-1), softmax(source.values))

    def layer_norm(self, source: Float, scale: NDArray[np.float32], bias: NDArray[np.float32]) -> Float:
        inputs = [source.name, self.writer.constant(scale), self.writer.constant(bias)]
        name = self.writer.node("LayerNormalization", inputs, axis=-1, epsilon=EPSILON)
        return Float(name, normalized(source.values, scale, bias))

    def rms_norm(self, source: Float, scale: NDArray[np.float32]) -> Float:
        """The normalization of Llama, in the operators that exporters write."""
        writer = self.writer
        squares = writer.node("Pow", [source.name, writer.constant(np.float32(2))])
        mean = writer.node("ReduceMean", [squares], axes=[-1])
        root = writer.node("Sqrt", [writer.node("Add", [mean, writer.constant(np.float32(EPSILON))])])
        name = writer.node("Mul", [writer.node("Div", [source.name, root]), writer.constant(scale)])
        deviation = np.sqrt(np.square(source.values).mean(axis=-1, keepdims=True) + EPSILON)
        return Float(name, source.values / deviation * scale)

    def gated(self, gate: Float, source: Float) -> Float:
        """``silu(gate) * source``."""
        writer = self.writer
        active = writer.node("Mul", [gate.name, writer.node("Sigmoid", [gate.name])])
        return Float(
            writer.node("Mul", [active, source.name]), gate.values / (1 + np.exp(-gate.values)) * source.values
        )

    def gelu(self, source: Float) -> Float:
        """Gelu in the operators that exporters write: x / sqrt(2), Erf, + 1, * x, / 2."""
        writer, root = self.writer, float(np.float32(np.sqrt(2)))
        scaled = writer.node("Div", [source.name, writer.constant(np.float32(root))])
        raised = writer.node("Add", [writer.node("Erf", [scaled]), writer.constant(np.float32(1))])
        name = writer.node("Mul", [writer.node("Mul", [source.name, raised]), writer.constant(np.float32(0.5))])
        return Float(name, source.values / 2 * (1 + erf(source.values / root)))

    def first_row(self, source: Quantized) -> Quantized:
        """The first row of [rows, columns], as [1, columns]."""
        ends = [self.writer.constant(np.array([number], np.int64)) for number in (0, 1, 0)]
        return Quantized(self.writer.node("Slice", [source.name, *ends]), source.values[:1], source.params)

    def content(self, outputs: Sequence[Float | Quantized]) -> bytes:
        return self.writer.model([_port(one) for one in self.inputs], [_port(one) for one in outputs])


def arrays(tensors: Sequence[Float | Quantized]) -> list[Array]:
    """The inputs or outputs of a call for `tensors`."""
    return [one.values if isinstance(one, Quantized) else one.values.astype(np.float32) for one in tensors]


def quantized_weights(values: NDArray[np.float64], bias: NDArray[np.float64]) -> Weights:
    """Weights [inputs, outputs] as int8, symmetric, with a scale for each output."""
    scales = (np.abs(values).max(axis=0) / _LARGEST_WEIGHT).astype(np.float32)
    return Weights(np.rint(values / scales).astype(np.int8), scales, bias.astype(np.float32))


def block_weights(values: NDArray[np.float32], block: int) -> BlockWeights:
    """Weights [outputs, inputs] in 4 bits, symmetric, with a scale for each `block` of inputs."""
    blocks = values.reshape(len(values), -1, block)
    scales = (np.abs(blocks).max(axis=2) / (_MIDDLE - 1)).astype(np.float32)
    stored = np.rint(blocks / scales[:, :, None]) + _MIDDLE
    return BlockWeights(stored.astype(np.uint8).reshape(values.shape), scales, block)


def _quantized(name: str, values: NDArray[np.float64], params: QuantParams | None = None) -> Quantized:
    if params is None:
        low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
        scale = np.float32((np.float32(high) - np.float32(low)) / np.float32(_LEVELS))
        params = QuantParams(float(scale), int(np.rint(np.float32(-low) / scale)))
    stored = np.clip(np.rint(values / params.scale) + params.zero_point, 0, _LEVELS)
    return Quantized(name, stored.astype(np.uint8), params)


def _port(tensor: Float | Quantized) -> Port:
    return tensor.name, tensor.values.shape, "UINT8" if isinstance(tensor, Quantized) else "FLOAT"
