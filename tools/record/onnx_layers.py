"""ONNX operators of whole layers between quantizations: normalizations, recurrent cells, attention.

ONNX Runtime computes them in f32; parameters go through a DequantizeLinear, as its quantizer leaves them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from onnx_graphs import CONTRIB, ModelBuilder

from tools.record import onnx_runtime
from tools.record.drawing import BYTES, Draw, Type
from tools.record.family import Case, Family

_CASES = 2
_IMAGE, _ROWS, _SEQUENCE = (2, 8, 6, 5), (2, 7, 24), (9, 2, 24)
_HIDDEN = 16


class _Network:
    """x -> DequantizeLinear -> one operator -> QuantizeLinear."""

    def __init__(self, name: str, dtype: Type, shape: tuple[int, ...]) -> None:
        self.draw, self.dtype, self.shape, self.builder = Draw(name), dtype, shape, ModelBuilder()
        self.node = self.builder.node
        self.by = self.draw.scale(0.01, 0.03), self.draw.inner_point(dtype)
        self.source = self.builder.dequantize(self.builder.input("x", shape, dtype), self.by, dtype)

    def entries(self, count: int) -> str:
        """Positive parameters, quantized to 8 bits."""
        return self.builder.weight(np.maximum(np.abs(self.draw.values((count,), np.int8) // 2), 20), 0.02)

    def biases(self, count: int) -> str:
        return self.builder.weight(self.draw.values((count,), np.int8).astype(np.int32) * 50, 0.0002)

    def weight(self, *shape: int) -> str:
        return self.builder.weight(np.maximum(self.draw.values(shape, np.int8), -127), 0.003)

    def case(self, name: str, value: str, scale: float, version: int = 17) -> Case:
        output = self.builder.quantize(value, (scale, self.draw.inner_point(self.dtype)), self.dtype)
        model = self.builder.finish(output, dtype=self.dtype, version=version)
        return Case(name, model, (self.draw.values(self.shape, self.dtype),))


def _batch(network: _Network) -> str:
    channels = network.shape[1]
    parameters = network.entries(channels), network.biases(channels)
    statistics = network.draw.normal((channels,)), network.draw.rng.uniform(0.5, 1.5, channels).astype(np.float32)
    return network.node("BatchNormalization", network.source, *parameters, *map(network.builder.constant, statistics))


def _normalized(kind: str, **attributes: Any) -> Callable[[_Network], str]:
    def add(network: _Network) -> str:
        count = network.shape[-1 if "Layer" in kind or "RMS" in kind else 1]
        parameters = [network.entries(count)] + ([] if "RMS" in kind else [network.biases(count)])
        return network.node(kind, network.source, *parameters, **attributes)

    return add


def _recurrent(kind: str, gates: int, **attributes: Any) -> Callable[[_Network], str]:
    def add(network: _Network) -> str:
        width, inputs = gates * _HIDDEN, network.shape[2]
        names = [network.source, network.weight(2, width, inputs), network.weight(2, width, _HIDDEN)]
        names.append(network.builder.constant(network.draw.normal((2, 2 * width)) * np.float32(0.2)))
        return network.node(kind, *names, hidden_size=_HIDDEN, direction="bidirectional", **attributes)

    return add


def _attention(network: _Network) -> str:
    width = network.shape[2]
    bias = network.builder.constant(network.draw.normal((3 * width,)))
    return network.node(f"{CONTRIB}.Attention", network.source, network.weight(width, 3 * width), bias, num_heads=4)


def _heads(network: _Network) -> str:
    return network.node(f"{CONTRIB}.MultiHeadAttention", *[network.source] * 3, num_heads=4)


_Layer = tuple[Callable[[_Network], str], tuple[int, ...], float, int]
_LAYERS: dict[str, _Layer] = {
    "BatchNormalization": (_batch, _IMAGE, 0.02, 17),
    "GroupNormalization": (_normalized("GroupNormalization", num_groups=4), _IMAGE, 0.02, 21),
    "InstanceNormalization": (_normalized("InstanceNormalization"), _IMAGE, 0.02, 17),
    "LayerNormalization": (_normalized("LayerNormalization"), _ROWS, 0.02, 17),
    "RMSNormalization": (_normalized("RMSNormalization"), _ROWS, 0.02, 23),
    "GRU": (_recurrent("GRU", 3, linear_before_reset=1), _SEQUENCE, 0.008, 17),
    "LSTM": (_recurrent("LSTM", 4), _SEQUENCE, 0.006, 17),
    "RNN": (_recurrent("RNN", 1), _SEQUENCE, 0.008, 17),
    f"{CONTRIB}.Attention": (_attention, _ROWS, 0.02, 17),
    f"{CONTRIB}.MultiHeadAttention": (_heads, _ROWS, 0.02, 17),
}


def _draw() -> Iterator[Case]:
    for kind, (add, shape, scale, version) in _LAYERS.items():
        for index in range(_CASES):
            name = f"{kind}_{index}"
            network = _Network(name, BYTES[(index + 1) % 2], shape)
            yield network.case(name, add(network), scale, version)


FAMILY = Family("onnx_layers", _draw, onnx_runtime.optimized)
