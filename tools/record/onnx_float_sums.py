"""ONNX operators that ONNX Runtime computes in f32, then rounds.

Its sums of f32 numbers have an order of their own.  Here the output's scale makes many exact results lie halfway
between two quantized values, so that some of them come out one step away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from onnx_graphs import ModelBuilder

from tools.record import onnx_runtime
from tools.record.drawing import BYTES, Draw, Type
from tools.record.family import Case, Family

_CASES = 4
_WEIGHT_SCALE = 0.0123
_SHAPE = (2, 8, 12, 12)


class _Network:
    """x -> DequantizeLinear -> one operator -> QuantizeLinear -> one or two outputs."""

    def __init__(self, name: str, dtype: Type) -> None:
        self.draw, self.dtype, self.builder = Draw(name), dtype, ModelBuilder()
        self.node = self.builder.node
        self.scale = self.draw.scale(0.01, 0.05)
        source = self.builder.input("x", _SHAPE, dtype)
        self.source = self.builder.dequantize(source, (self.scale, self.draw.inner_point(dtype)), dtype)

    def weight(self, *shape: int) -> str:
        return self.builder.weight(np.maximum(self.draw.values(shape, np.int8), -127), _WEIGHT_SCALE)

    def case(self, name: str, value: str, ratio: float, readers: int) -> Case:
        """Every reader has a coarser scale than the one before; `ratio` is that of the first to the input's scale."""
        scales = [(self.scale * ratio * (k + 1), self.draw.inner_point(self.dtype)) for k in range(readers)]
        outputs = [self.builder.quantize(value, to, self.dtype) for to in scales]
        model = self.builder.finish(*outputs, dtype=self.dtype)
        return Case(name, model, (self.draw.values(_SHAPE, self.dtype),))


def _average_pool(network: _Network) -> tuple[str, float]:
    return network.node("AveragePool", network.source, kernel_shape=[3, 2], strides=[1, 2]), 1


def _reduce_mean(network: _Network) -> tuple[str, float]:
    return network.node("ReduceMean", network.source, axes=[3], keepdims=1), 2


def _reduce_sum(network: _Network) -> tuple[str, float]:
    return network.node("ReduceSum", network.source, network.builder.constant(np.array([2])), keepdims=0), 12


def _conv_transpose(network: _Network) -> tuple[str, float]:
    weight = network.weight(8, 5, 3, 3)
    return network.node("ConvTranspose", network.source, weight, strides=[2, 2]), 250 * _WEIGHT_SCALE


def _conv(network: _Network) -> tuple[str, float]:
    return network.node("Conv", network.source, network.weight(6, 8, 3, 3)), 500 * _WEIGHT_SCALE


def _matmul(network: _Network) -> tuple[str, float]:
    return network.node("MatMul", network.source, network.weight(12, 7)), 500 * _WEIGHT_SCALE


def _add(network: _Network) -> tuple[str, float]:
    return network.node("Add", network.source, network.weight(8, 12, 12)), 2


def _mul(network: _Network) -> tuple[str, float]:
    return network.node("Mul", network.source, network.weight(8, 12, 12)), 250 * _WEIGHT_SCALE


def _softmax(network: _Network) -> tuple[str, float]:
    return network.node("Softmax", network.source, axis=-1), 0.2


_OPERATORS: dict[str, Callable[[_Network], tuple[str, float]]] = {
    "AveragePool": _average_pool,
    "ReduceMean": _reduce_mean,
    "ReduceSum": _reduce_sum,
    "ConvTranspose": _conv_transpose,
    "Conv": _conv,
    "MatMul": _matmul,
    "Add": _add,
    "Mul": _mul,
    "Softmax": _softmax,
}
# With two readers these stay f32 operators, for int8 data or for any.
_READ_TWICE = ("Conv", "Add", "Mul", "Softmax")


def _draw() -> Iterator[Case]:
    for kind, add in _OPERATORS.items():
        for index in range(_CASES):
            name = f"{kind}_{index}"
            network = _Network(name, BYTES[(index + 1) % 2])
            value, ratio = add(network)
            yield network.case(name, value, ratio, 2 if kind in _READ_TWICE else 1)


FAMILY = Family("onnx_float_sums", _draw, onnx_runtime.optimized)
