"""An ONNX graph that grows by nodes that ONNX Runtime computes at once: it knows what fits, and all values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from qdialect.support.interface import Array

onnxruntime: Any = import_module("onnxruntime")
_SET = 21
CONTRIB = "com.microsoft"
_SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, -1e-40, 3.4e38, -65504, 2.0**31, -(2.0**63), 0.5, -1.5, 255.5)
_MOVEMENTS = (
    *("Abs", "Cast", "Clip", "Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather"),
    *("GatherElements", "GatherND", "Identity", "If", "Max", "MaxPool", "Min", "Neg", "OneHot", "Pad"),
    *("Relu", "Reshape", "ReverseSequence", "Slice", "Split", "Squeeze", "Tile", "TopK", "Transpose"),
    *("Trilu", "Unsqueeze", "Where"),
)
_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Sqrt", "Reciprocal")
_DISCRETE = (
    *("ArgMax", "ArgMin", "Cast", "Ceil", "DynamicQuantizeLinear", "Equal", "Floor", "Greater"),
    *("GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Mod", "NonZero", "QuantizeLinear"),
    *("Round", "Sign", "TopK", "Unique"),
)
"""Operators whose results jump: the last bits of their operands must be those of ONNX Runtime."""
_WITHOUT_NAN = ("ReduceMax", "ReduceMin", "MaxPool", "ArgMax", "ArgMin", "TopK", "CumSum", "Sign", "MatMulNBits")
"""Operators that docs/onnx.md has another NaN of than ONNX Runtime."""


class InvalidNodeError(Exception):
    """ONNX Runtime refuses a node, or its results are not to be compared."""


@dataclass
class Network:
    """A graph that grows: nodes, constants, and what ONNX Runtime gives for each input and node."""

    rng: np.random.Generator
    is_quantized: bool = False
    has_specials: bool = False
    opset: int = _SET
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    constants: dict[str, TensorProto] = field(default_factory=dict[str, TensorProto])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    inexact: set[str] = field(default_factory=set[str])
    """Values whose last bits may be others than ONNX Runtime's."""

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.values[name].shape())

    def dtype(self, name: str) -> np.dtype[Any]:
        return helper.tensor_dtype_to_np_dtype(self.values[name].element_type())

    def array(self, dtype: Any, shape: Sequence[int]) -> Array:
        """Numbers of a type: integers of its whole range or small ones, and special floats at times."""
        rng, kind = self.rng, np.dtype(dtype).kind
        if kind == "b":
            return np.asarray(rng.random(shape) < 0.5)
        if kind in "iu":
            info = np.iinfo(dtype)
            bounds = (info.min, info.max) if rng.random() < 0.3 else (max(info.min, -9), 9)
            return np.asarray(rng.integers(*bounds, shape, dtype, endpoint=True))
        numbers: Array = np.asarray(rng.normal(size=shape))
        if self.has_specials:
            numbers = np.where(rng.random(shape) < 0.04, rng.choice(_SPECIAL, shape), numbers)
        with np.errstate(over="ignore"):
            return numbers.astype(dtype)

    def input(self, value: Array) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = value
        self.values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(value)
        return name

    def constant(self, value: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def number(self, dtype: Any, value: float) -> str:
        return self.constant(np.array(value).astype(dtype))

    def integers(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def weights(self, *shape: int) -> str:
        scale = np.float32((2 / max(1, np.prod(shape[1:]))) ** 0.5)
        with np.errstate(over="ignore"):
            return self.constant(self.array(np.float32, shape) * scale)

    def operand(self, value: Array) -> str:
        """A constant, or one more input."""
        return self.constant(value) if self.rng.random() < 0.7 else self.input(value)

    def add(
        self, kind: str, inputs: Sequence[str], *, results: int = 1, reads: Sequence[str] = (), **attributes: Any
    ) -> str:
        """The first result of one more node; raises `InvalidNodeError`.  `reads` is what its graphs read."""
        names = [f"v{len(self.nodes)}_{index}" for index in range(results)]
        node = helper.make_node(kind, list(inputs), names, name=f"{kind}_{len(self.nodes)}", **attributes)
        operands = [name for name in dict.fromkeys((*inputs, *reads)) if name]
        is_inexact = not self.inexact.isdisjoint(operands)
        if kind in _DISCRETE and is_inexact:
            raise InvalidNodeError(f"operands of {kind} are inexact")
        if kind in _WITHOUT_NAN and any(self._has_nan(name) for name in operands if name in self.values):
            raise InvalidNodeError(f"an operand of {kind} has a NaN")
        found = dict(zip(names, self._computed(node, operands), strict=True))
        self.nodes.append(node)
        self.values |= found
        is_exact = kind in _MOVEMENTS or (kind in _ARITHMETIC and not self.is_quantized)
        if is_inexact or not is_exact:
            self.inexact |= {name for name in names if self.dtype(name).kind not in "biu"}
        return names[0]

    def _has_nan(self, name: str) -> bool:
        return self.dtype(name).kind == "f" and bool(np.isnan(self.values[name].numpy()).any())

    def _computed(self, node: NodeProto, operands: Iterable[str]) -> list[Any]:
        given = {name: self.values[name] for name in operands if name not in self.constants}
        declared = [helper.make_tensor_value_info(name, one.element_type(), None) for name, one in given.items()]
        constants = [self.constants[name] for name in operands if name in self.constants]
        results = [ValueInfoProto(name=name) for name in node.output]
        model = _model(helper.make_graph([node], "node", declared, results, constants), self.opset)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            return session.run_with_ort_values(None, given)
        except Exception as error:
            raise InvalidNodeError(str(error)) from error

    def model(self, outputs: Sequence[str], *, is_open: bool = False) -> ModelProto:
        """The model; with an open batch of the first input where `is_open`."""
        declared = [self._declared(name, is_open=is_open and name == "x0") for name in self.inputs]
        results = [helper.make_tensor_value_info(name, self.values[name].element_type(), None) for name in outputs]
        read = {name for node in self.nodes for name in reads_of(node)}
        constants = [one for name, one in self.constants.items() if name in read]
        return _model(helper.make_graph(self.nodes, "drawn", declared, results, constants), self.opset)

    def _declared(self, name: str, *, is_open: bool) -> ValueInfoProto:
        shape: list[int | str] = list(self.shape(name))
        element = self.values[name].element_type()
        return helper.make_tensor_value_info(name, element, ["batch", *shape[1:]] if is_open else shape)


def _model(graph: GraphProto, opset: int) -> ModelProto:
    sets = [helper.make_opsetid("", opset), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10)


def reads_of(node: NodeProto) -> Iterable[str]:
    """The values that a node and the graphs in it read."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from reads_of(inner)
