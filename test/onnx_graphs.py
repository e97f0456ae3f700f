"""Small ONNX models as bytes, and what their operators mean as plain formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np
from compiled_ops import check_compiled
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from qdialect.bench.truth.windows import convolution
from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

Array = NDArray[Any]
Quantization = tuple[float, int]
CONTRIB = "com.microsoft"
# Of the file format: the newest that ONNX Runtime reads is older than the newest that the package writes.
IR_VERSION = 10


@dataclass
class ModelBuilder:
    """Nodes in order; every method that adds one gives the name of its output."""

    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    constants: list[TensorProto] = field(default_factory=list[TensorProto])
    inputs: list[ValueInfoProto] = field(default_factory=list[ValueInfoProto])

    def input(self, name: str, shape: Sequence[int | str], dtype: type[np.generic] = np.float32) -> str:
        self.inputs.append(_info(name, shape, np.dtype(dtype)))
        return name

    def constant(self, array: Array | float, name: str = "") -> str:
        name = name or f"c{len(self.constants)}"
        values = np.float32(array) if isinstance(array, float) else array
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Beside the attributes: `name`, the node's own, and `output`, its output's."""
        output = str(attributes.pop("output", f"t{len(self.nodes)}"))
        self.node_of_many(kind, inputs, [output], **attributes)
        return output

    def node_of_many(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """A node with outputs of these names; an empty one is omitted."""
        name = str(attributes.pop("name", ""))
        domain, _, operator = kind.rpartition(".")
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=name, domain=domain, **attributes))

    def quantize(self, value: str, to: Quantization, dtype: type[np.generic] = np.uint8) -> str:
        return self.node("QuantizeLinear", value, *self.parameters(to, dtype))

    def dequantize(self, value: str, by: Quantization, dtype: type[np.generic] = np.uint8) -> str:
        return self.node("DequantizeLinear", value, *self.parameters(by, dtype))

    def parameters(self, of: Quantization, dtype: type[np.generic]) -> tuple[str, str]:
        return self.constant(of[0]), self.constant(np.array(of[1], dtype=dtype))

    def weight(self, quantized: Array, scales: float | Sequence[float], axis: int = 0, zero_point: int = 0) -> str:
        """Weights as f32 values, by one scale or by one for each index of `axis`."""
        scale = np.array(scales, dtype=np.float32)
        points = np.full(scale.shape, zero_point, dtype=quantized.dtype)
        names = (self.constant(quantized), self.constant(scale), self.constant(points))
        return self.node("DequantizeLinear", *names, **({"axis": axis} if scale.ndim else {}))

    def finish(
        self,
        *outputs: str,
        dtype: type[np.generic] | Sequence[type[np.generic]] = np.uint8,
        version: int = 17,
        shapes: Mapping[str, Sequence[int | str]] = MappingProxyType({}),
    ) -> bytes:
        """`shapes` are those that outputs declare."""
        dtypes = dtype if isinstance(dtype, Sequence) else [dtype] * len(outputs)
        infos = [_info(name, shapes.get(name), np.dtype(own)) for name, own in zip(outputs, dtypes, strict=True)]
        graph = helper.make_graph(self.nodes, "graph", self.inputs, infos, self.constants)
        opsets = [helper.make_opsetid("", version), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION).SerializeToString()


def _info(name: str, shape: Sequence[int | str] | None, dtype: np.dtype[Any]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)


def run(content: bytes, *inputs: Array) -> Array:
    """The one output of a model."""
    (result,) = interpreter.run(import_onnx(content), list(inputs))
    return result


def drawn(shape: Sequence[int], dtype: type[np.generic], seed: int = 0) -> Array:
    """Quantized values over their whole range."""
    info = np.iinfo(np.dtype(dtype).name)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def f32_values(quantized: Array, by: Quantization) -> Array:
    """DequantizeLinear."""
    return (quantized.astype(np.int32) - by[1]).astype(np.float32) * np.float32(by[0])


def quantized_of(values: Array, to: Quantization, dtype: type[np.generic] = np.uint8) -> Array:
    """QuantizeLinear: the float32 quotient to even, then the zero point."""
    info = np.iinfo(np.dtype(dtype).name)
    rounded = np.rint(values.astype(np.float32) / np.float32(to[0])).astype(np.float64) + to[1]
    return np.clip(rounded, info.min, info.max).astype(dtype)


def requantized(
    acc: Array, input_scale: float, weight_scales: Array, to: Quantization, dtype: type[np.generic] = np.uint8
) -> Array:
    """ONNX Runtime: float32(acc) * (s_x * s_w / s_y) to even, zero point last; channels are dimension 1."""
    factor = np.float32(input_scale) * weight_scales.astype(np.float32) / np.float32(to[0])
    shape = [1, -1, *(1 for _ in acc.shape[2:])]
    info = np.iinfo(np.dtype(dtype).name)
    rounded = np.rint(acc.astype(np.float32) * factor.reshape(shape)).astype(np.float64) + to[1]
    return np.clip(rounded, info.min, info.max).astype(dtype)


def convolved(data: Array, weight: Array, window: Mapping[str, Any]) -> Array:
    """Sums of products of any rank, channels first, from the definition."""
    rank = data.ndim - 2
    pads, groups = window.get("pads", [0] * 2 * rank), window.get("group", 1)
    steps = window.get("strides", [1] * rank), window.get("dilations", [1] * rank)
    return convolution(data.astype(np.int64), weight.astype(np.int64), pads, *steps, groups)


def spread(data: Array, weight: Array, window: Mapping[str, Any]) -> Array:
    """A transposed convolution from the definition: every element of the data adds a kernel to the result."""
    rank = data.ndim - 2
    strides, dilation = window.get("strides", [1] * rank), window.get("dilations", [1] * rank)
    pads = window.get("pads", [0] * 2 * rank)
    extra, groups = window.get("output_padding", [0] * rank), window.get("group", 1)
    extent = [(weight.shape[2 + i] - 1) * dilation[i] + 1 for i in range(rank)]
    full = [(data.shape[2 + i] - 1) * strides[i] + extent[i] + extra[i] for i in range(rank)]
    share, outputs = data.shape[1] // groups, weight.shape[1]
    result = np.zeros((data.shape[0], groups * outputs, *full), dtype=np.int64)
    for n, c, *at in np.ndindex(*data.shape):
        first = c // share * outputs
        taps = tuple(slice(at[i] * strides[i], at[i] * strides[i] + extent[i], dilation[i]) for i in range(rank))
        result[(n, slice(first, first + outputs), *taps)] += int(data[n, c, *at]) * weight[c].astype(np.int64)
    kept = tuple(slice(pads[i], full[i] - pads[rank + i]) for i in range(rank))
    return result[(slice(None), slice(None), *kept)]


def evaluated(content: bytes, *inputs: Array) -> Array:
    """The first output of a model with inputs ``x0``, ``x1``, ..., by onnx's reference."""
    evaluator: Any = ReferenceEvaluator(content)
    return evaluator.run(None, {f"x{i}": array for i, array in enumerate(inputs)})[0]


# ONNX models whose results ONNX Runtime, the interpreter and compiled code agree on.

ORT: Any = import_module("onnxruntime")


def agreed(content: bytes, *inputs: Array) -> Array:
    """The one output of the model `content`, which all of them give."""
    module = import_onnx(content)
    found = interpreter.run(module, list(inputs))
    check_compiled(module, "host", [list(inputs)], [found])
    session = ORT.InferenceSession(content, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {one.name: x for one, x in zip(session.get_inputs(), inputs, strict=True)})
    np.testing.assert_array_equal(found[0], wanted, strict=True)
    return wanted
