"""ONNX graphs that are computed in float64 while they are written: the range of each tensor is that of its own values.

So a quantized network needs neither calibration data nor another program for its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.bench.onnx_writer import GraphWriter
from qdialect.quant_math import QuantParams, transcendental
from qdialect.quant_math.transcendental import NumpyMachine

Array = NDArray[Any]

_LEVELS = 255
_LARGEST_WEIGHT = 127
_EPSILON = 1e-5


@dataclass(frozen=True, eq=False)
class Real:
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
        """Bytes of weights and bias."""
        return self.values.nbytes + self.bias.nbytes


class TracedGraph:
    """Writes nodes and computes them; every method that adds one gives its result."""

    def __init__(self) -> None:
        self.writer = GraphWriter()
        self.inputs: list[Real | Quantized] = []
        self.macs = 0
        self.weights: list[Weights] = []
        self._floats: dict[str, Real] = {}

    def input(self, name: str, values: NDArray[np.float32]) -> Real:
        """Add a float32 input."""
        self.inputs.append(Real(name, values.astype(np.float64)))
        return Real(name, values.astype(np.float64))

    def quantized_input(self, name: str, values: NDArray[np.float32]) -> Quantized:
        """Add a uint8 input, which stands for `values`."""
        result = _quantized(name, values.astype(np.float64))
        self.inputs.append(result)
        return result

    def quantize(self, source: Real, params: QuantParams | None = None) -> Quantized:
        """A QuantizeLinear for `params`, or for the range of the numbers."""
        result = _quantized("", source.values, params)
        writer = self.writer
        scale = writer.constant(np.float32(result.params.scale))
        name = writer.node("QuantizeLinear", [source.name, scale, writer.constant(np.uint8(result.params.zero_point))])
        return Quantized(name, result.values, result.params)

    def dequantize(self, source: Quantized) -> Real:
        """A DequantizeLinear, one for all readers."""
        if source.name not in self._floats:
            writer, params = self.writer, source.params
            scale = writer.constant(np.float32(params.scale))
            name = writer.node("DequantizeLinear", [source.name, scale, writer.constant(np.uint8(params.zero_point))])
            values = (source.values.astype(np.float64) - params.zero_point) * params.scale
            self._floats[source.name] = Real(name, values)
        return self._floats[source.name]

    def shaped(self, source: Quantized | Real, shape: Sequence[int], order: Sequence[int] = ()) -> Any:
        """`source` with another shape, and its axes then in another `order`; of the same kind as `source`."""
        name = self.writer.node("Reshape", [source.name, self.writer.constant(np.array(shape, np.int64))])
        values = source.values.reshape(shape)
        if order:
            name, values = self.writer.node("Transpose", [name], perm=list(order)), values.transpose(order)
        return Quantized(name, values, source.params) if isinstance(source, Quantized) else Real(name, values)

    def transposed(self, source: Quantized | Real, order: Sequence[int]) -> Any:
        """`source` with its axes in another `order`; of the same kind as `source`."""
        name, values = self.writer.node("Transpose", [source.name], perm=list(order)), source.values.transpose(order)
        return Quantized(name, values, source.params) if isinstance(source, Quantized) else Real(name, values)

    def concatenated(self, first: Quantized, second: Quantized, axis: int) -> Quantized:
        """Two tensors of the same scale one after the other."""
        name = self.writer.node("Concat", [first.name, second.name], axis=axis)
        return Quantized(name, np.concatenate([first.values, second.values], axis), first.params)

    def product(self, left: Real, right: Real) -> Real:
        """A matrix product of two tensors."""
        values = left.values @ right.values
        self.macs += prod(values.shape) * left.values.shape[-1]
        return Real(self.writer.node("MatMul", [left.name, right.name]), values)

    def linear(self, source: Quantized, weights: Weights) -> Real:
        """A Gemm of [rows, inputs] with dequantized weights and an int32 bias."""
        writer, data = self.writer, self.dequantize(source)
        bias_scales = (np.float32(source.params.scale) * weights.scales).astype(np.float32)
        bias = np.rint(weights.bias / bias_scales).astype(np.int32)
        zeros = [writer.constant(np.zeros(bias.shape, dtype)) for dtype in (np.int8, np.int32)]
        kernel = [writer.constant(array) for array in (weights.values, weights.scales)]
        added = [writer.constant(array) for array in (bias, bias_scales)]
        inputs = [
            data.name,
            writer.node("DequantizeLinear", [*kernel, zeros[0]], axis=1),
            writer.node("DequantizeLinear", [*added, zeros[1]], axis=0),
        ]
        values = data.values @ (weights.values * weights.scales.astype(np.float64)) + bias * bias_scales.astype(float)
        self._count(len(data.values), weights)
        return Real(writer.node("Gemm", inputs), values)

    def dynamic_linear(self, source: Real, weights: Weights) -> Real:
        """Quantization by the range of [rows, inputs], an integer product, its scales and the bias."""
        writer = self.writer
        kernel, scales, bias = (writer.constant(array) for array in (weights.values, weights.scales, weights.bias))
        data, scale, zero_point = writer.nodes("DynamicQuantizeLinear", [source.name], 3)
        product = writer.node("MatMulInteger", [data, kernel, zero_point, writer.constant(np.int8(0))])
        factors = writer.node("Mul", [scale, scales])
        scaled = writer.node("Mul", [writer.node("Cast", [product], to=1), factors])
        held = _quantized("", source.values)
        stored = held.values.astype(np.float64) - held.params.zero_point
        values = stored @ weights.values.astype(np.float64) * held.params.scale * weights.scales + weights.bias
        self._count(len(source.values), weights)
        return Real(writer.node("Add", [scaled, bias]), values)

    def convolution(self, source: Quantized, weights: Weights, size: int) -> Real:
        """Windows of `size` x `size` pixels that do not overlap: NCHW to [pixels, outputs]; a Conv and transposes."""
        writer, data = self.writer, self.dequantize(source)
        _, channels, height, width = data.values.shape
        outputs = weights.values.shape[1]
        kernel = np.ascontiguousarray(weights.values.T.reshape(outputs, channels, size, size))
        zeros = writer.constant(np.zeros(outputs, np.int8))
        dequantized = [writer.constant(kernel), writer.constant(weights.scales), zeros]
        inputs = [data.name, writer.node("DequantizeLinear", dequantized, axis=0)]
        name = writer.node("Conv", inputs, kernel_shape=[size, size], strides=[size, size])
        rows, columns = height // size, width // size
        windows = data.values.reshape(channels, rows, size, columns, size).transpose(1, 3, 0, 2, 4)
        values = windows.reshape(rows * columns, -1) @ (weights.values * weights.scales.astype(np.float64))
        self._count(rows * columns, weights)
        return Real(name, values.T.reshape(1, outputs, rows, columns))

    def _count(self, rows: int, weights: Weights) -> None:
        self.macs += rows * weights.values.size
        self.weights.append(weights)

    def add(self, left: Real, right: Real) -> Real:
        """The sum of two tensors."""
        return Real(self.writer.node("Add", [left.name, right.name]), left.values + right.values)

    def constant(self, values: NDArray[np.float32]) -> Real:
        """Float numbers that the model holds."""
        return Real(self.writer.constant(values), values.astype(np.float64))

    def softmax(self, source: Real) -> Real:
        """Softmax along the last axis."""
        raised = np.exp(source.values - source.values.max(axis=-1, keepdims=True))
        return Real(self.writer.node("Softmax", [source.name], axis=-1), raised / raised.sum(axis=-1, keepdims=True))

    def layer_norm(self, source: Real, scale: NDArray[np.float32], bias: NDArray[np.float32]) -> Real:
        """LayerNormalization of the last axis."""
        inputs = [source.name, self.writer.constant(scale), self.writer.constant(bias)]
        name = self.writer.node("LayerNormalization", inputs, axis=-1, epsilon=_EPSILON)
        centred = source.values - source.values.mean(axis=-1, keepdims=True)
        deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + _EPSILON)
        return Real(name, centred / deviation * scale + bias)

    def gelu(self, source: Real) -> Real:
        """Gelu in the operators that exporters write: x / sqrt(2), Erf, + 1, * x, / 2."""
        writer, root = self.writer, float(np.float32(np.sqrt(2)))
        scaled = writer.node("Div", [source.name, writer.constant(np.float32(root))])
        raised = writer.node("Add", [writer.node("Erf", [scaled]), writer.constant(np.float32(1))])
        name = writer.node("Mul", [writer.node("Mul", [source.name, raised]), writer.constant(np.float32(0.5))])
        return Real(name, self._chained(source.values, lambda x: x / 2 * (1 + _erf(x / root))))

    @staticmethod
    def _chained(values: NDArray[np.float64], function: Callable[[NDArray[np.float64]], Any]) -> NDArray[np.float64]:
        return np.asarray(function(values), np.float64)

    def first_row(self, source: Quantized) -> Quantized:
        """The first row of [rows, columns], as [1, columns]."""
        ends = [self.writer.constant(np.array([number], np.int64)) for number in (0, 1, 0)]
        return Quantized(self.writer.node("Slice", [source.name, *ends]), source.values[:1], source.params)

    def content(self, outputs: Sequence[Real | Quantized]) -> bytes:
        """The model's file."""
        ends = [[(one.name, one.values.shape, _element(one)) for one in end] for end in (self.inputs, outputs)]
        return self.writer.model(*ends)


def arrays(tensors: Sequence[Real | Quantized]) -> list[Array]:
    """What a caller gives or gets for `tensors`."""
    return [one.values if isinstance(one, Quantized) else one.values.astype(np.float32) for one in tensors]


def quantized_weights(values: NDArray[np.float64], bias: NDArray[np.float64]) -> Weights:
    """Weights [inputs, outputs] as int8, symmetric, with a scale for each output."""
    scales = (np.abs(values).max(axis=0) / _LARGEST_WEIGHT).astype(np.float32)
    return Weights(np.rint(values / scales).astype(np.int8), scales, bias.astype(np.float32))


def _quantized(name: str, values: NDArray[np.float64], params: QuantParams | None = None) -> Quantized:
    if params is None:
        low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
        scale = np.float32((np.float32(high) - np.float32(low)) / np.float32(_LEVELS))
        params = QuantParams(float(scale), int(np.rint(np.float32(-low) / scale)))
    stored = np.clip(np.rint(values / params.scale) + params.zero_point, 0, _LEVELS)
    return Quantized(name, stored.astype(np.uint8), params)


def _element(tensor: Real | Quantized) -> str:
    return "UINT8" if isinstance(tensor, Quantized) else "FLOAT"


def _erf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return transcendental.erf(NumpyMachine(), x)
