"""Writes a `Network` as an ONNX model: float operators between QuantizeLinear and DequantizeLinear, or quantized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from qdialect.arithmetic import QuantParams
from qdialect.bench import network as nn
from qdialect.support.interface import Array

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto


Port = tuple[str, Sequence[int], str]
"""Name, shape and element type of an input or output."""

CONTRIB = "com.microsoft"
_OPSET = 17
_IR_VERSION = 9
_TO_NHWC = [0, 2, 3, 1]
_TO_NCHW = [0, 3, 1, 2]


class GraphWriter:
    """Collects nodes and constants; every method that adds one gives the name of its result.

    The one class here that needs the package `onnx`, and only when it is used.
    """

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def constant(self, array: Array | np.generic) -> str:
        from onnx import numpy_helper

        name = f"k{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add a node of the operator `kind`, with its domain before a dot where it is not ONNX's own."""
        return self.nodes(kind, inputs, 1, **attributes)[0]

    def nodes(self, kind: str, inputs: Sequence[str], results: int, **attributes: Any) -> list[str]:
        from onnx import helper

        first = f"t{len(self._nodes)}"
        names = [first, *(f"{first}_{index}" for index in range(1, results))]
        domain, _, operator = kind.rpartition(".")
        self._nodes.append(helper.make_node(operator, list(inputs), names, domain=domain, **attributes))
        return names

    def parameters(self, of: QuantParams) -> tuple[str, str]:
        return self.constant(np.float32(of.scale)), self.constant(np.uint8(of.zero_point))

    def dequantized(self, values: Array, scales: Array, axis: int) -> str:
        """A constant of weights or of a bias, with a scale for each index of `axis`."""
        parts = (values, scales, np.zeros(scales.shape, values.dtype))
        return self.node("DequantizeLinear", [self.constant(part) for part in parts], axis=axis)

    def model(self, inputs: Sequence[Port], outputs: Sequence[Port], opset: int = _OPSET) -> bytes:
        from onnx import TensorProto, helper

        element_type = TensorProto.DataType.Value
        sources, results = (
            [helper.make_tensor_value_info(name, element_type(kind), shape) for name, shape, kind in ports]
            for ports in (inputs, outputs)
        )
        graph = helper.make_graph(self._nodes, "network", sources, results, self._constants)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION).SerializeToString()


def write_qdq(network: nn.Network, *, channels_last: bool = False, rounds_middle: bool = True) -> bytes:
    """The network in the form that quantizers write.

    With `channels_last` images at its ends are NHWC, by transposes there. Without `rounds_middle` an activation
    reads the f32 result of its convolution, which is another function.
    """
    return _Quantized(network, rounds_middle).content(channels_last)


def boundary(shape: Sequence[int], *, channels_last: bool) -> list[int]:
    """The shape of an input or output as the model has it; only images have a layout."""
    return [shape[axis] for axis in _TO_NHWC] if channels_last and len(shape) == 4 else list(shape)


class _Quantized:
    """The tensors written so far; each is quantized once, where it is written, and dequantized where it is read."""

    def __init__(self, network: nn.Network, rounds_middle: bool) -> None:
        self._network = network
        self._rounds_middle = rounds_middle
        self._writer = GraphWriter()
        self._quantized: dict[str, str] = {}
        self._f32_values: dict[str, str] = {}

    def content(self, channels_last: bool) -> bytes:
        network, writer = self._network, self._writer
        source, result = network.input, network.output
        shapes = [boundary(tensor.shape, channels_last=channels_last) for tensor in (source, result)]
        self._quantized[source.name] = writer.node("Transpose", ["x"], perm=_TO_NCHW) if channels_last else "x"
        for index, node in enumerate(network.nodes):
            following = network.nodes[index + 1] if index + 1 < len(network.nodes) else None
            self._node(node, following)
        last = self._quantized[result.name]
        if channels_last and len(result.shape) == 4:
            last = writer.node("Transpose", [last], perm=_TO_NHWC)
        return writer.model([("x", shapes[0], "UINT8")], [(last, shapes[1], "UINT8")])

    def _node(self, node: nn.Node, following: nn.Node | None) -> None:
        match node:
            case nn.Convolution():
                self._contraction(node, self._convolve(node), following)
            case nn.Dense():
                inputs = [self._f32(node.source), *self._weights(node.source, node.weights, transposed=True)]
                self._contraction(node, self._writer.node("Gemm", inputs), following)
            case nn.Activation():
                self._quantize(write_activation(self._writer, node, self._f32(node.source)), node.result)
            case nn.Sum():
                total = self._writer.node("Add", [self._f32(node.source), self._f32(node.other)])
                self._quantize(self._writer.node("Relu", [total]), node.result)
            case nn.MaxPool():
                self._quantize(self._max_pool(node), node.result)
            case nn.Mean():
                self._quantize(self._writer.node("GlobalAveragePool", [self._f32(node.source)]), node.result)
            case nn.Flatten():
                # On quantized values, so that the product after it sees its DequantizeLinear.
                data = self._quantized[node.source.name]
                self._quantized[node.result.name] = self._writer.node("Flatten", [data], axis=1)
            case _:
                assert_never(node)

    def _contraction(self, node: nn.Convolution | nn.Dense, f32: str, following: nn.Node | None) -> None:
        if isinstance(following, nn.Activation) and not self._rounds_middle:
            self._f32_values[node.result.name] = f32
            return
        self._quantize(f32, node.result)

    def _convolve(self, node: nn.Convolution) -> str:
        writer = self._writer
        inputs = [self._f32(node.source), *self._weights(node.source, node.weights)]
        f32 = writer.node("Conv", inputs, **window_attributes(node))
        match node.clamp:
            case "none":
                return f32
            case "relu":
                return writer.node("Relu", [f32])
            case "relu6":
                return writer.node("Clip", [f32, writer.constant(np.float32(0)), writer.constant(np.float32(6))])

    def _max_pool(self, node: nn.MaxPool) -> str:
        window, padding = [node.window] * 2, [node.padding] * 4
        inputs = [self._f32(node.source)]
        return self._writer.node("MaxPool", inputs, kernel_shape=window, strides=[node.stride] * 2, pads=padding)

    def _weights(self, source: nn.QuantizedTensor, weights: nn.Weights, *, transposed: bool = False) -> tuple[str, str]:
        values = np.ascontiguousarray(weights.values.T) if transposed else weights.values
        kernel = self._writer.dequantized(values, weights.scales, 1 if transposed else 0)
        return kernel, self._writer.dequantized(weights.bias, weights.bias_scales(source), 0)

    def _quantize(self, f32: str, to: nn.QuantizedTensor) -> None:
        self._quantized[to.name] = self._writer.node("QuantizeLinear", [f32, *self._writer.parameters(to.params)])

    def _f32(self, of: nn.QuantizedTensor) -> str:
        if of.name not in self._f32_values:
            inputs = [self._quantized[of.name], *self._writer.parameters(of.params)]
            self._f32_values[of.name] = self._writer.node("DequantizeLinear", inputs)
        return self._f32_values[of.name]


def window_attributes(node: nn.Convolution) -> dict[str, Any]:
    """The window attributes of all of ONNX's convolutions."""
    return {
        "kernel_shape": list(node.weights.values.shape[2:]),
        "pads": list(node.padding),
        "strides": [node.stride] * 2,
        "group": node.groups,
    }


def write_activation(writer: GraphWriter, node: nn.Activation, f32: str) -> str:
    """The function of `node` on f32 values."""
    match node.kind:
        case "leaky_relu":
            return writer.node("LeakyRelu", [f32], alpha=nn.LEAKY_SLOPE)
        case "hardswish":
            return writer.node("HardSwish", [f32])
        case "swish":
            return writer.node("Mul", [f32, writer.node("Sigmoid", [f32])])


# Writes a layer as an ONNX model of quantized operators: QLinearConv, QGemm and their kin of ONNX Runtime.

_SIGMOID = QuantParams(1 / 256, 0)


def write_operators(network: nn.Network, *, channels_last: bool = False, rounds_sigmoid: bool = False) -> bytes:
    """The layer of `network`: a convolution or product, and perhaps an activation.

    With `channels_last` input and output are NHWC. With `rounds_sigmoid` swish quantizes its sigmoid before the
    product, which is another function.
    """
    writer = GraphWriter()
    value = "x"
    for node in network.nodes:
        value = _node(writer, node, value, channels_last, rounds_sigmoid)
    shapes = [boundary(tensor.shape, channels_last=channels_last) for tensor in (network.input, network.output)]
    return writer.model([("x", shapes[0], "UINT8")], [(value, shapes[1], "UINT8")])


def _node(writer: GraphWriter, node: nn.Node, value: str, channels_last: bool, rounds_sigmoid: bool) -> str:
    match node:
        case nn.Convolution():
            inputs = [*_operands(writer, node, value), writer.constant(node.weights.bias)]
            kind, layout = (f"{CONTRIB}.QLinearConv", {"channels_last": 1}) if channels_last else ("QLinearConv", {})
            return writer.node(kind, inputs, **layout, **window_attributes(node))
        case nn.Dense():
            inputs = _operands(writer, node, value)
            # The bias stands before the result's parameters.
            inputs.insert(6, writer.constant(node.weights.bias))
            return writer.node(f"{CONTRIB}.QGemm", inputs)
        case nn.Activation():
            return _activation(writer, node, value, rounds_sigmoid)
        case _:
            raise TypeError(f"no quantized operator for {type(node).__name__}")


def _operands(writer: GraphWriter, node: nn.Convolution | nn.Dense, value: str) -> list[str]:
    values, scales = node.weights.values, node.weights.scales
    kernel = np.ascontiguousarray(values.T) if isinstance(node, nn.Dense) else values
    weights = [writer.constant(array) for array in (kernel, scales, np.zeros(scales.shape, np.int8))]
    return [value, *writer.parameters(node.source.params), *weights, *writer.parameters(node.result.params)]


def _activation(writer: GraphWriter, node: nn.Activation, value: str, rounds_sigmoid: bool) -> str:
    source, result = writer.parameters(node.source.params), writer.parameters(node.result.params)
    if node.kind == "leaky_relu":
        return writer.node(f"{CONTRIB}.QLinearLeakyRelu", [value, *source, *result], alpha=nn.LEAKY_SLOPE)
    if node.kind == "swish" and rounds_sigmoid:
        middle = writer.parameters(_SIGMOID)
        sigmoid = writer.node(f"{CONTRIB}.QLinearSigmoid", [value, *source, *middle])
        return writer.node(f"{CONTRIB}.QLinearMul", [value, *source, sigmoid, *middle, *result])
    f32 = writer.node("DequantizeLinear", [value, *source])
    return writer.node("QuantizeLinear", [write_activation(writer, node, f32), *result])
