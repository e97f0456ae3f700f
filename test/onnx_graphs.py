"""Small ONNX models as bytes, what their operators mean as plain formulas, and what computes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from compiled_ops import check_compiled
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tolerances import assert_bits, assert_floats_within

from qdialect.bench.truth.windows import convolution
from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

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
        """Of the attributes `name` is the node's own, and `output` its output's."""
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
        dtype: type[np.generic] | Sequence[type[np.generic]] | None = np.uint8,
        version: int = 17,
        shapes: Mapping[str, Sequence[int | str]] = MappingProxyType({}),
    ) -> bytes:
        """Without a `dtype` the file leaves the types of the outputs open; `shapes` are those that it declares."""
        dtypes = dtype if isinstance(dtype, Sequence) else [dtype] * len(outputs)
        infos = [
            _info(name, shapes.get(name), np.dtype(own)) if own else helper.make_empty_tensor_value_info(name)
            for name, own in zip(outputs, dtypes, strict=True)
        ]
        graph = helper.make_graph(self.nodes, "graph", self.inputs, infos, self.constants)
        opsets = [helper.make_opsetid("", version), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION).SerializeToString()


def divided_model() -> bytes:
    """A convolution with a residual, what ONNX Runtime alone runs, and a convolution."""
    b, by = ModelBuilder(), (0.04, 117)
    weights = np.random.default_rng(0).integers(-127, 128, (4, 4, 3, 3)).astype(np.int8)
    value = data = b.dequantize(b.quantize(b.input("x", (1, 4, 16, 16)), by), by)
    for kind, *others in (("Conv", ""), ("Add", data), ("Hardmax",), ("Conv", "")):
        operands = [other or b.weight(weights, 0.01) for other in others]
        how = {"pads": [1, 1, 1, 1]} if kind == "Conv" else {}
        value = b.dequantize(b.quantize(b.node(kind, value, *operands, **how), by), by)
    return b.finish(value, dtype=np.float32)


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


def drawn_weights(shape: Sequence[int], dtype: type[np.generic], seed: int = 0) -> Array:
    """Signed values over half of their range, as ONNX Runtime's sums of two saturate on CPUs without VNNI."""
    values = drawn(shape, dtype, seed)
    return np.asarray(values // 2, dtype) if dtype is np.int8 else values


def f32_values(quantized: Array, by: Quantization) -> Array:
    """DequantizeLinear."""
    return (quantized.astype(np.int32) - by[1]).astype(np.float32) * np.float32(by[0])


def quantized_of(values: Array, to: Quantization, dtype: type[np.generic] = np.uint8) -> Array:
    """QuantizeLinear: the float32 quotient to even, then the zero point."""
    info = np.iinfo(np.dtype(dtype).name)
    rounded = np.rint(values.astype(np.float32) / np.float32(to[0])).astype(np.float64) + to[1]
    return np.clip(rounded, info.min, info.max).astype(dtype)


def convolved(data: Array, weight: Array, window: Mapping[str, Any]) -> Array:
    """Sums of products of any rank, channels first, from the definition."""
    rank = data.ndim - 2
    pads, groups = window.get("pads", [0] * 2 * rank), window.get("group", 1)
    steps = window.get("strides", [1] * rank), window.get("dilations", [1] * rank)
    return convolution(data.astype(np.int64), weight.astype(np.int64), pads, *steps, groups)


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# A model of one node.


@dataclass(frozen=True)
class Known:
    """A constant: these elements, or `numbers` of this shape."""

    value: Array | tuple[int, ...]


Operand = Array | tuple[int, ...] | Known | None


def node(
    kind: str, operands: Sequence[Operand], outputs: int | Sequence[str] = 1, version: int = 18, **attributes: Any
) -> tuple[bytes, list[Array]]:
    """The model and the arrays of a call. A shape stands for `numbers` of it; what is None is omitted."""
    model, names, given = ModelBuilder(), list[str](), list[Array]()
    for index, operand in enumerate(operands):
        value = operand.value if isinstance(operand, Known) else operand
        array = numbers(*value, seed=index) if isinstance(value, tuple) else value
        if array is None:
            names.append("")
        elif isinstance(operand, Known):
            names.append(model.constant(array))
        else:
            names.append(model.input(f"x{index}", array.shape, array.dtype.type))
            given.append(array)
    results = [f"y{index}" for index in range(outputs)] if isinstance(outputs, int) else outputs
    model.node_of_many(kind, names, results, **attributes)
    return model.finish(*filter(None, results), dtype=None, version=version), given


# What a model gives: by ONNX Runtime, by the package's reference, interpreted and compiled.

ORT: Any = import_module("onnxruntime")


def of_onnx_runtime(model: bytes | Path, *inputs: Array, is_optimized: bool = True, **entries: str) -> list[Array]:
    """The outputs; `entries` are those of its configuration."""
    options = ORT.SessionOptions()
    options.log_severity_level = 4
    # With several threads what is quantized in a call is quantized for each row of a batch.
    options.intra_op_num_threads = 1
    for name, entry in entries.items():
        options.add_session_config_entry(f"session.{name}", entry)
    if not is_optimized:
        options.graph_optimization_level = ORT.GraphOptimizationLevel.ORT_DISABLE_ALL
    if "x64quantprecision" in entries:
        session = ORT.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    else:
        session = _session(model, options)
    return session.run(None, dict(zip([one.name for one in session.get_inputs()], inputs, strict=True)))


def _session(model: bytes | Path, options: Any) -> Any:
    """Without saturation where ONNX Runtime can; its pass fails where several nodes read a weight."""
    try:
        options.add_session_config_entry("session.x64quantprecision", "1")
        return ORT.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except ORT.capi.onnxruntime_pybind11_state.Fail:
        options.add_session_config_entry("session.x64quantprecision", "0")
        return ORT.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def of_reference(content: bytes, *inputs: Array) -> list[Array]:
    """The outputs by the package `onnx`."""
    model = ModelProto.FromString(content)
    evaluator: Any = ReferenceEvaluator(model)
    with np.errstate(all="ignore"):
        results: Any = evaluator.run(None, dict(zip([one.name for one in model.graph.input], inputs, strict=True)))
    return [np.asarray(result) for result in results]


def found_by(content: bytes, *inputs: Array) -> tuple[Array, ...]:
    """What the interpreter and compiled code give."""
    module = import_onnx(content)
    found = interpreter.run(module, inputs)
    check_compiled(module, "host", [inputs], [found])
    return found


def run_both(content: bytes, *inputs: Array) -> Array:
    """The only result, of both."""
    (found,) = found_by(content, *inputs)
    return found


def agreed(content: bytes, *inputs: Array, within: str = "", count: int | None = None) -> Array:
    """The first output of a model.

    ONNX Runtime, the interpreter and compiled code agree on the first `count` in every bit, or on floats as closely as
    `FLOATS` says of `within`.
    """
    found = found_by(content, *inputs)
    assert_same(found[:count], of_onnx_runtime(content, *inputs)[:count], within)
    return found[0]


def assert_same(found: Sequence[Array], wanted: Sequence[Array], within: str = "") -> None:
    for one, other in zip(found, wanted, strict=True):
        if within and other.dtype == np.float32:
            assert_floats_within(one, other, within)
        else:
            assert_bits(one, other)


def check_node(kind: str, operands: Sequence[Operand], within: str = "layer", **options: Any) -> Array:
    """The first output of a `node`, on which all of them agree."""
    content, inputs = node(kind, operands, **options)
    return agreed(content, *inputs, within=within)


def check(kind: str, operands: Sequence[Operand], **options: Any) -> tuple[Array, ...]:
    """The outputs of a `node`: those of the package's reference, bit for bit."""
    content, inputs = node(kind, operands, **options)
    found = found_by(content, *inputs)
    assert_same(found, of_reference(content, *inputs))
    return found


def refused(content: bytes) -> str:
    """Why a model is not imported."""
    with pytest.raises(ImportModelError) as caught:
        import_onnx(content)
    return caught.value.render()
