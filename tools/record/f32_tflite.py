"""TFLite networks of f32 operators: a small convolutional one, without and with a softmax, functions and arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tflite
from tflite_graphs import options

from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter
from tools.record import litert
from tools.record.drawing import Draw
from tools.record.family import Array, Case, Family
from tools.record.tflite_models import bits

_OPERATOR, _OPTIONS, _ACTIVATION = tflite.BuiltinOperator, tflite.BuiltinOptions, tflite.ActivationFunctionType
_IMAGE = (1, 17, 17, 3)
_HALF = (1, 9, 9, 16)
_SAME = tflite.Padding.SAME
_CLASSES = 10


class _Network:
    """Operators in order; tensors are named by their index."""

    def __init__(self, name: str) -> None:
        self.name, self.draw, self.writer = name, Draw(name), ModelWriter(name)
        self.input = self.writer.tensor("x", _IMAGE, np.float32)

    def constant(self, array: Array) -> int:
        return self.writer.constant("c", array)

    def weight(self, *shape: int) -> int:
        return self.constant(self.draw.normal(shape, 0.35))

    def node(
        self, code: int, inputs: Sequence[int], shape: Sequence[int] = _IMAGE, kind: int = _OPTIONS.NONE, *fields: int
    ) -> int:
        output = self.writer.tensor("t", shape, np.float32)
        self.writer.operator(code, inputs, output, kind, options(*fields) if kind != _OPTIONS.NONE else None)
        return output

    def add(self, left: int, right: int) -> int:
        return self.node(_OPERATOR.ADD, [left, right], _IMAGE, _OPTIONS.AddOptions)

    def sub(self, left: int, right: int) -> int:
        return self.node(_OPERATOR.SUB, [left, right], _IMAGE, _OPTIONS.SubOptions)

    def mul(self, left: int, right: int) -> int:
        return self.node(_OPERATOR.MUL, [left, right], _IMAGE, _OPTIONS.MulOptions)

    def div(self, left: int, right: int) -> int:
        return self.node(_OPERATOR.DIV, [left, right], _IMAGE, _OPTIONS.DivOptions)

    def number(self, value: float) -> int:
        return self.constant(np.array(value, dtype=np.float32))

    def case(self, output: int) -> Case:
        return Case(self.name, self.writer.finish([self.input], [output]), (self.draw.normal(_IMAGE),))


def _classifier(network: _Network) -> int:
    """Convolution, depthwise convolution, mean over the image and a dense layer."""
    inputs = [network.input, network.weight(16, 3, 3, 3), network.weight(16)]
    fields = (_SAME, 2, 2, _ACTIVATION.RELU6, 1, 1)
    value = network.node(_OPERATOR.CONV_2D, inputs, _HALF, _OPTIONS.Conv2DOptions, *fields)
    inputs = [value, network.weight(1, 3, 3, 16), network.constant(np.zeros(16, dtype=np.float32))]
    fields = (_SAME, 1, 1, 1, _ACTIVATION.RELU, 1, 1)
    value = network.node(_OPERATOR.DEPTHWISE_CONV_2D, inputs, _HALF, _OPTIONS.DepthwiseConv2DOptions, *fields)
    axes = network.constant(np.array([1, 2], dtype=np.int32))
    value = network.node(_OPERATOR.MEAN, [value, axes], (1, 16), _OPTIONS.ReducerOptions)
    inputs = [value, network.weight(_CLASSES, 16), network.weight(_CLASSES)]
    return network.node(_OPERATOR.FULLY_CONNECTED, inputs, (1, _CLASSES), _OPTIONS.FullyConnectedOptions)


def _with_softmax(network: _Network) -> int:
    value = _classifier(network)
    return network.node(_OPERATOR.SOFTMAX, [value], (1, _CLASSES), _OPTIONS.SoftmaxOptions, bits(1))


def _functions(network: _Network) -> int:
    """sigmoid(x) * tanh(x) + exp(x) / (|x| + 1) - sqrt(|x|)."""
    x = network.input
    magnitude = network.node(_OPERATOR.ABS, [x])
    exponential = network.node(_OPERATOR.EXP, [x], _IMAGE, _OPTIONS.ExpOptions)
    quotient = network.div(exponential, network.add(magnitude, network.number(1)))
    product = network.mul(network.node(_OPERATOR.LOGISTIC, [x]), network.node(_OPERATOR.TANH, [x]))
    return network.sub(network.add(product, quotient), network.node(_OPERATOR.SQRT, [magnitude]))


def _arithmetic(network: _Network) -> int:
    """max((x * x - 0.5) / (|x| + 1) + c, 1 / sqrt(|x| + 0.1)), c one number for each channel."""
    x = network.input
    magnitude = network.node(_OPERATOR.ABS, [x])
    square = network.sub(network.mul(x, x), network.number(0.5))
    quotient = network.div(square, network.add(magnitude, network.number(1)))
    root = network.node(_OPERATOR.RSQRT, [network.add(magnitude, network.number(0.1))])
    return network.node(_OPERATOR.MAXIMUM, [network.add(quotient, network.weight(3)), root])


_NETWORKS: dict[str, Callable[[_Network], int]] = {
    "network": _classifier,
    "softmax": _with_softmax,
    "functions": _functions,
    "arithmetic": _arithmetic,
}


def _draw() -> Iterator[Case]:
    for name, build in _NETWORKS.items():
        network = _Network(name)
        yield network.case(build(network))


FAMILY = Family("f32_tflite", _draw, litert.reference)
