"""From an .onnx model to a `qnn` module with the arithmetic of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from qdialect._mlir import ir
from qdialect.diagnostics import ImportModelError
from qdialect.frontends.budget import Budget, is_shape
from qdialect.frontends.common import (
    Array,
    GraphNode,
    UnsupportedError,
    content_of,
    converting,
    refuse,
    require,
)
from qdialect.frontends.onnx.extents import Extents
from qdialect.frontends.onnx.folding import folded, folded_shape
from qdialect.frontends.onnx.model import Graph, Node
from qdialect.frontends.onnx.operators import Call, planner_of
from qdialect.frontends.onnx.reader import read_graph
from qdialect.frontends.onnx.schema import check_attributes
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.module import Planned, arguments_of, module_of, result_of
from qdialect.frontends.planning.tensors import Computed, Constant, F32Tensor, Plan, Tensor, known

_ELEMENTS = ("i8", "ui8", "i16", "ui16", "i32", "i64", "f32")


def import_onnx(
    source: str | Path | bytes,
    context: ir.Context | None = None,
    *,
    batch: int = 1,
    dims: Mapping[str, int] = MappingProxyType({}),
) -> ir.Module:
    """A verified module with one public function ``@main`` from an .onnx file, or from its content.

    Arguments and results keep the model's order, shapes and types; their attribute is `qnn.name`.  Extents that the
    model leaves open are looked up in `dims`, by their name or as ``INPUT:AXIS``; a first one that is not there is
    `batch`.  Operators between DequantizeLinear and QuantizeLinear become the integer ops that ONNX Runtime's default
    optimization makes of them.  Every op is located at the name of the tensor it computes.

    Raises `ImportModelError` for a file that is damaged or lacks its external data, for extents that stay open, where
    the package `onnx` is not installed, and for a model with nodes that the dialect cannot express; then every such
    node is a note.
    """
    extents = Extents(batch, dims)
    content, name = content_of(source, "model.onnx")
    graph = _read(content, name, source, extents)
    size = len(content) + sum(array.nbytes for array in graph.constants.values())
    planned = _Planner(graph, name, extents.hints(), Plan(budget=Budget.of_file(size))).run()
    return module_of(planned, name, context)


def nodes_of(
    source: str | Path | bytes, *, batch: int = 1, dims: Mapping[str, int] = MappingProxyType({})
) -> tuple[GraphNode, ...]:
    """The nodes of an .onnx file, supported or not; raises `ImportModelError` for one that cannot be read."""
    content, name = content_of(source, "model.onnx")
    graph = _read(content, name, source, Extents(batch, dims))
    return tuple(GraphNode(node.title, node.kind, node.inputs, node.outputs) for node in graph.nodes)


def _read(content: bytes, name: str, source: str | Path | bytes, extents: Extents) -> Graph:
    try:
        return read_graph(content, None if isinstance(source, bytes) else Path(source).parent, extents)
    except ImportModelError as error:
        raise ImportModelError(f"'{name}': {error}") from error


@dataclass
class _Planner:
    """Finds what every name of the graph stands for; None is what an unsupported op gives."""

    graph: Graph
    name: str
    hints: Sequence[str]
    plan: Plan
    tensors: dict[str, Tensor | None] = field(default_factory=dict[str, Tensor | None])
    offences: list[str] = field(default_factory=list[str])

    def run(self) -> Planned:
        self.tensors.update({key: Constant(array) for key, array in self.graph.constants.items()})
        self.tensors.update(dict.fromkeys(self.graph.unsupported))
        arguments = arguments_of(self.graph.inputs, _ELEMENTS, self.offences)
        for value in arguments:
            self.tensors[value.name] = _tensor_of(value)
        for node in self.graph.nodes:
            self._visit(node)
        results = [result for name in self.graph.outputs for result in self._result(name)]
        refuse(self.name, self.offences, self.hints)
        return Planned(arguments, tuple(self.plan.values), tuple(results), self.plan.budget)

    def _visit(self, node: Node) -> None:
        for name in filter(None, node.inputs):
            if name not in self.tensors:
                raise self._damage(f"{node.title} reads '{name}', which nothing before it gives")
        for name in filter(None, node.outputs):
            if name in self.tensors:
                raise self._damage(f"{node.title} gives '{name}', which is given before it")
        inputs = [self.tensors[name] if name else None for name in node.inputs]
        is_lost = any(name and tensor is None for name, tensor in zip(node.inputs, inputs, strict=True))
        self.tensors.update(dict.fromkeys(filter(None, node.outputs)))
        try:
            with converting():
                self._check_constants(node.inputs)
                self._plan(node, inputs, is_lost)
        except UnsupportedError as error:
            self.offences.append(f"{node.title}: {error}")

    def _check_constants(self, names: Sequence[str]) -> None:
        for name in names:
            require(name not in self.graph.unsupported, self.graph.unsupported.get(name, ""))

    def _plan(self, node: Node, inputs: Sequence[Tensor | None], is_lost: bool) -> None:
        if is_lost:
            self._check_operator(node)
        else:
            self._define(node, self._tensors(node, inputs))

    def _check_operator(self, node: Node) -> None:
        """What depends on an unsupported op cannot be planned, but its operator can be one too."""
        if not _asks_for_shape(node):
            planner_of(node.kind)

    def _define(self, node: Node, tensors: Tensor | tuple[Tensor, ...]) -> None:
        given = tensors if isinstance(tensors, tuple) else (tensors,)
        asked = max(index for index, name in enumerate(node.outputs) if name) + 1
        plural = "" if len(given) == 1 else "s"
        require(asked <= len(given), f"must have {len(given)} output{plural}, but got {asked}")
        self.tensors.update({name: tensor for name, tensor in zip(node.outputs, given, strict=False) if name})

    def _tensors(self, node: Node, inputs: Sequence[Tensor | None]) -> Tensor | tuple[Tensor, ...]:
        require(any(node.outputs), "must have at least 1 output")
        check_attributes(node)
        if _asks_for_shape(node) and inputs[0] is not None:
            return Constant(folded_shape(node, inputs[0].shape))
        array = folded(node, [_array_of(tensor) for tensor in inputs], self.plan.budget)
        if array is not None:
            return Constant(array)
        planner = planner_of(node.kind)
        return planner(Call(self.plan, node, tuple(inputs)))

    def _result(self, name: str) -> tuple[tuple[str, Value], ...]:
        if name not in self.tensors:
            raise self._damage(f"nothing gives the output '{name}'")
        if name in self.graph.unsupported:
            self.offences.append(f"output '{name}': {self.graph.unsupported[name]}")
        tensor = self.tensors[name]
        return () if tensor is None else result_of(name, lambda: self._value(name, tensor), _ELEMENTS, self.offences)

    def _damage(self, what: str) -> ImportModelError:
        return ImportModelError(f"'{self.name}': file is damaged: {what}")

    def _value(self, name: str, tensor: Tensor) -> Value:
        if isinstance(tensor, Constant):
            return known(name, tensor.array)
        return tensor.f32(self.plan, name) if isinstance(tensor, F32Tensor) else tensor


def _asks_for_shape(node: Node) -> bool:
    return node.kind == "Shape" and len(node.inputs) == len(node.outputs) == 1


def _tensor_of(value: Value) -> Tensor | None:
    """What an input stands for; None where no tensor has its shape, which `arguments_of` has found."""
    if value.element != "f32":
        return value
    return Computed(value.shape, value) if is_shape(value.shape) else None


def _array_of(tensor: Tensor | None) -> Array | None:
    return tensor.array if isinstance(tensor, Constant) else None
