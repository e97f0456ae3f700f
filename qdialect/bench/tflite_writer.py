"""Writes a `Network` as a TFLite model: NHWC, signed quantized values, which are the unsigned ones less 128."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

import numpy as np
import tflite
from numpy.typing import NDArray

from qdialect.arithmetic import QuantParams
from qdialect.bench import network as nn
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization, options
from qdialect.support.interface import Array

_OFFSET = 128
_CLAMPS: dict[nn.Clamp, int] = {
    "none": tflite.ActivationFunctionType.NONE,
    "relu": tflite.ActivationFunctionType.RELU,
    "relu6": tflite.ActivationFunctionType.RELU6,
}
_OPERATOR = tflite.BuiltinOperator


def write_tflite(network: nn.Network, *, f32_activations: bool = False) -> bytes:
    """The model's file; with `f32_activations` these are float operators between DEQUANTIZE and QUANTIZE."""
    return _Model(network, f32_activations).content()


def signed_channels_last(values: Array) -> NDArray[np.int8]:
    """Data of a network as its TFLite model takes and gives it."""
    signed = (values.astype(np.int16) - _OFFSET).astype(np.int8)
    return np.ascontiguousarray(signed.transpose(0, 2, 3, 1)) if signed.ndim == 4 else signed


class _Model:
    def __init__(self, network: nn.Network, f32_activations: bool) -> None:
        self._network = network
        self._f32_activations = f32_activations
        self._writer = ModelWriter("benchmark")
        self._tensors: dict[str, int] = {}

    def content(self) -> bytes:
        network = self._network
        source = self._add(network.input)
        for node in network.nodes:
            self._node(node)
        return self._writer.finish([source], [self._tensors[network.output.name]])

    def _node(self, node: nn.Node) -> None:
        match node:
            case nn.Convolution():
                self._convolution(node)
            case nn.Dense():
                inputs = [self._of(node.source), *self._weights(node, node.weights.values, 0)]
                self._emit(_OPERATOR.FULLY_CONNECTED, inputs, node.result, *options("FullyConnectedOptions"))
            case nn.Activation() if self._f32_activations:
                self._f32_activation(node)
            case nn.Activation():
                sigmoid = (
                    self._add(nn.QuantizedTensor("sigmoid", node.source.shape, QuantParams(1 / 256, 0)))
                    if node.kind == "swish"
                    else 0
                )
                self._activation(node, self._of(node.source), self._add(node.result), sigmoid)
            case nn.Sum():
                inputs = [self._of(node.source), self._of(node.other)]
                option = options("AddOptions", FusedActivationFunction=_CLAMPS["relu"])
                self._emit(_OPERATOR.ADD, inputs, node.result, *option)
            case nn.MaxPool():
                self._max_pool(node)
            case nn.Mean():
                inputs = [self._of(node.source), self._integers("axes", (1, 2))]
                self._emit(_OPERATOR.MEAN, inputs, node.result, *options("ReducerOptions", KeepDims=True))
            case nn.Flatten():
                shape = self._integers("shape", node.result.shape)
                self._emit(_OPERATOR.RESHAPE, [self._of(node.source), shape], node.result)
            case _:
                assert_never(node)

    def _convolution(self, node: nn.Convolution) -> None:
        source, is_same = self._padded(node.source, node.padding, node)
        padding = tflite.Padding.SAME if is_same else tflite.Padding.VALID
        window = {"Padding": padding, "StrideW": node.stride, "StrideH": node.stride}
        clamp, values = _CLAMPS[node.clamp], node.weights.values
        if node.groups > 1:
            inputs = [source, *self._weights(node, values.transpose(1, 2, 3, 0), 3)]
            option = options("DepthwiseConv2DOptions", **window, DepthMultiplier=1, FusedActivationFunction=clamp)
            self._emit(_OPERATOR.DEPTHWISE_CONV_2D, inputs, node.result, *option)
        else:
            inputs = [source, *self._weights(node, values.transpose(0, 2, 3, 1), 0)]
            option = options("Conv2DOptions", **window, FusedActivationFunction=clamp)
            self._emit(_OPERATOR.CONV_2D, inputs, node.result, *option)

    def _padded(
        self, source: nn.QuantizedTensor, padding: tuple[int, int, int, int], node: nn.Convolution
    ) -> tuple[int, bool]:
        """The convolution's input, and whether it pads by itself; other padding is an operator."""
        if not any(padding):
            return self._of(source), False
        window, stride, extent = node.weights.values.shape[2], node.stride, source.shape[2]
        total = max((-(-extent // stride) - 1) * stride + window - extent, 0)
        same = (total // 2, total // 2, total - total // 2, total - total // 2)
        return (self._of(source), True) if padding == same else (self._pad(source, padding), False)

    def _pad(self, source: nn.QuantizedTensor, padding: tuple[int, int, int, int]) -> int:
        top, left, bottom, right = padding
        batch, channels, height, width = source.shape
        shape = (batch, channels, height + top + bottom, width + left + right)
        padded = nn.QuantizedTensor(f"{source.name}_padded", shape, source.params)
        amounts = self._writer.constant("amounts", np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32))
        self._emit(_OPERATOR.PAD, [self._of(source), amounts], padded)
        return self._of(padded)

    def _f32_activation(self, node: nn.Activation) -> None:
        shape = _channels_last(node.source.shape)
        source, result, sigmoid = (
            self._writer.tensor(name, shape, np.float32) for name in ("real", "active", "sigmoid")
        )
        self._writer.operator(_OPERATOR.DEQUANTIZE, [self._of(node.source)], source)
        self._activation(node, source, result, sigmoid)
        self._emit(_OPERATOR.QUANTIZE, [result], node.result)

    def _activation(self, node: nn.Activation, source: int, result: int, sigmoid: int) -> None:
        """The operators from tensor `source` to tensor `result`, by way of `sigmoid` where there are two."""
        match node.kind:
            case "leaky_relu":
                option = options("LeakyReluOptions", Alpha=nn.LEAKY_SLOPE)
                self._writer.operator(_OPERATOR.LEAKY_RELU, [source], result, *option)
            case "hardswish":
                self._writer.operator(_OPERATOR.HARD_SWISH, [source], result)
            case "swish":
                self._writer.operator(_OPERATOR.LOGISTIC, [source], sigmoid)
                self._writer.operator(_OPERATOR.MUL, [source, sigmoid], result, *options("MulOptions"))

    def _max_pool(self, node: nn.MaxPool) -> None:
        # Its source is not negative, so that a border of zeros never wins.
        source = self._pad(node.source, (node.padding, node.padding, node.padding, node.padding))
        window = {"Padding": tflite.Padding.VALID, "StrideW": node.stride, "StrideH": node.stride}
        option = options("Pool2DOptions", **window, FilterWidth=node.window, FilterHeight=node.window)
        self._emit(_OPERATOR.MAX_POOL_2D, [source], node.result, *option)

    def _weights(self, node: nn.Convolution | nn.Dense, values: Array, axis: int) -> tuple[int, int]:
        weights = node.weights
        zeros = (0,) * weights.scales.size
        by_channel = Quantization(tuple(weights.scales.tolist()), zeros, axis)
        bias = Quantization(tuple(weights.bias_scales(node.source).tolist()), zeros)
        kernel = self._writer.constant("weights", np.ascontiguousarray(values), by_channel)
        return kernel, self._writer.constant("bias", weights.bias, bias)

    def _integers(self, name: str, values: Sequence[int]) -> int:
        return self._writer.constant(name, np.array(values, np.int32))

    def _emit(self, code: int, inputs: Sequence[int], result: nn.QuantizedTensor, *option: Any) -> None:
        self._writer.operator(code, inputs, self._add(result), *option)

    def _add(self, tensor: nn.QuantizedTensor) -> int:
        shape = _channels_last(tensor.shape)
        quantization = Quantization((tensor.params.scale,), (tensor.params.zero_point - _OFFSET,))
        self._tensors[tensor.name] = self._writer.tensor(tensor.name, shape, np.int8, quantization)
        return self._tensors[tensor.name]

    def _of(self, tensor: nn.QuantizedTensor) -> int:
        return self._tensors[tensor.name]


def _channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], shape[2], shape[3], shape[1]) if len(shape) == 4 else shape
