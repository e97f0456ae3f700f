"""Writes a layer as an ONNX model of quantized operators: QLinearConv, QGemm and their kin of ONNX Runtime."""

from __future__ import annotations

import numpy as np

from qdialect.bench.network import LEAKY_SLOPE, Activation, Convolution, Dense, Network, Node, QuantizedTensor
from qdialect.bench.onnx_writer import CONTRIB, GraphWriter, boundary, window_attributes, write_activation
from qdialect.quant_math import QuantParams

_SIGMOID = QuantizedTensor("sigmoid", (), QuantParams(1 / 256, 0))


def write_operators(network: Network, *, channels_last: bool = False, rounds_sigmoid: bool = False) -> bytes:
    """The layer of `network`: a convolution or product, and perhaps an activation.

    With `channels_last` input and output are NHWC. With `rounds_sigmoid` swish quantizes its sigmoid before the
    product, which is another function.
    """
    writer = GraphWriter()
    value = "x"
    for node in network.nodes:
        value = _node(writer, node, value, channels_last, rounds_sigmoid)
    shapes = [boundary(tensor.shape, channels_last=channels_last) for tensor in (network.input, network.output)]
    return writer.finish(("x", shapes[0]), (value, shapes[1]))


def _node(writer: GraphWriter, node: Node, value: str, channels_last: bool, rounds_sigmoid: bool) -> str:
    match node:
        case Convolution():
            return _convolution(writer, node, value, channels_last)
        case Dense():
            inputs = [value, *writer.parameters(node.source), *_weights(writer, node), *writer.parameters(node.result)]
            # The bias stands before the result's parameters.
            inputs.insert(6, writer.constant(node.weights.bias))
            return writer.node(f"{CONTRIB}.QGemm", inputs)
        case Activation():
            return _activation(writer, node, value, rounds_sigmoid)
        case _:
            raise TypeError(f"no quantized operator for {type(node).__name__}")


def _convolution(writer: GraphWriter, node: Convolution, value: str, channels_last: bool) -> str:
    inputs = [value, *writer.parameters(node.source), *_weights(writer, node), *writer.parameters(node.result)]
    attributes = window_attributes(node)
    inputs.append(writer.constant(node.weights.bias))
    if channels_last:
        return writer.node(f"{CONTRIB}.QLinearConv", inputs, channels_last=1, **attributes)
    return writer.node("QLinearConv", inputs, **attributes)


def _weights(writer: GraphWriter, node: Convolution | Dense) -> list[str]:
    values, scales = node.weights.values, node.weights.scales
    kernel = np.ascontiguousarray(values.T) if isinstance(node, Dense) else values
    return [writer.constant(array) for array in (kernel, scales, np.zeros(scales.shape, np.int8))]


def _activation(writer: GraphWriter, node: Activation, value: str, rounds_sigmoid: bool) -> str:
    source, result = writer.parameters(node.source), writer.parameters(node.result)
    if node.kind == "leaky_relu":
        return writer.node(f"{CONTRIB}.QLinearLeakyRelu", [value, *source, *result], alpha=LEAKY_SLOPE)
    if node.kind == "swish" and rounds_sigmoid:
        middle = writer.parameters(_SIGMOID)
        sigmoid = writer.node(f"{CONTRIB}.QLinearSigmoid", [value, *source, *middle])
        return writer.node(f"{CONTRIB}.QLinearMul", [value, *source, sigmoid, *middle, *result])
    f32 = writer.node("DequantizeLinear", [value, *source])
    return writer.node("QuantizeLinear", [write_activation(writer, node, f32), *result])
