"""From an .onnx model to a `qnn` module with the arithmetic of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from qdialect._mlir import func, ir
from qdialect.context import make_context, verify
from qdialect.diagnostics import ImportModelError, VerificationError
from qdialect.dialect import ConstraintError
from qdialect.frontends.common import (
    GraphNode,
    Interface,
    UnsupportedError,
    content_of,
    interface_attributes,
    interface_offences,
    refuse,
    require,
)
from qdialect.frontends.onnx.emitter import Emitter, Value
from qdialect.frontends.onnx.extents import Extents
from qdialect.frontends.onnx.folding import folded, folded_shape
from qdialect.frontends.onnx.model import Array, Graph, Node
from qdialect.frontends.onnx.operators import Call, planner_of
from qdialect.frontends.onnx.reader import read_graph
from qdialect.frontends.onnx.tensors import Computed, Constant, Plan, Real, Tensor, known, shape_of

_ELEMENTS = ("i8", "ui8", "i16", "i32", "i64", "f32")


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
    graph, name = _read(source, extents)
    planned = _Planner(graph, name, extents.hints()).run()
    with context or make_context(), ir.Location.file(name, 0, 0):
        try:
            module = _build(graph, planned, name)
            verify(module)
        except (ConstraintError, TypeError) as error:
            raise ImportModelError(f"'{name}': model is damaged: {error}") from error
        except VerificationError as error:
            raise ImportModelError(f"'{name}': model is damaged: {error}", error.diagnostics) from error
    return module


def nodes_of(
    source: str | Path | bytes, *, batch: int = 1, dims: Mapping[str, int] = MappingProxyType({})
) -> tuple[GraphNode, ...]:
    """The nodes of an .onnx file, supported or not; raises `ImportModelError` for one that cannot be read."""
    graph, _ = _read(source, Extents(batch, dims))
    return tuple(GraphNode(node.title, node.kind, node.inputs, node.outputs) for node in graph.nodes)


def _read(source: str | Path | bytes, extents: Extents) -> tuple[Graph, str]:
    content, name = content_of(source, "model.onnx")
    try:
        return read_graph(content, None if isinstance(source, bytes) else Path(source).parent, extents), name
    except ImportModelError as error:
        raise ImportModelError(f"'{name}': {error}") from error


@dataclass(frozen=True)
class _Planned:
    arguments: tuple[Value, ...]
    values: tuple[Value, ...]
    results: tuple[Value, ...]


@dataclass
class _Planner:
    """Finds what every name of the graph stands for; None is what an offender gives."""

    graph: Graph
    name: str
    hints: Sequence[str]
    plan: Plan = field(default_factory=Plan)
    tensors: dict[str, Tensor | None] = field(default_factory=dict[str, Tensor | None])
    offences: list[str] = field(default_factory=list[str])

    def run(self) -> _Planned:
        self.tensors.update({key: Constant(array) for key, array in self.graph.constants.items()})
        arguments = tuple(Value(tensor.name, tensor.shape, tensor.element) for tensor in self.graph.inputs)
        self.offences += interface_offences("input", self.graph.inputs, _ELEMENTS)
        for value in arguments:
            self.tensors[value.name] = Computed(value.shape, value) if value.element == "f32" else value
        for node in self.graph.nodes:
            self._visit(node)
        results = [self._result(output) for output in self.graph.outputs]
        refuse(self.name, self.offences, self.hints)
        return _Planned(arguments, tuple(self.plan.values), tuple(value for value in results if value is not None))

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
            if is_lost:
                self._check_operator(node)
            else:
                self._define(node, self._tensors(node, inputs))
        except UnsupportedError as error:
            self.offences.append(f"{node.title}: {error}")

    def _check_operator(self, node: Node) -> None:
        """What depends on an offender cannot be planned, but its operator can be one too."""
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
        if _asks_for_shape(node) and inputs[0] is not None:
            return Constant(folded_shape(node, shape_of(inputs[0])))
        array = folded(node, [_array_of(tensor) for tensor in inputs])
        if array is not None:
            return Constant(array)
        planner = planner_of(node.kind)
        return planner(Call(self.plan, node, tuple(inputs)))

    def _result(self, name: str) -> Value | None:
        if name not in self.tensors:
            raise self._damage(f"nothing gives the output '{name}'")
        tensor = self.tensors[name]
        try:
            value = self._value(name, tensor) if tensor is not None else None
        except UnsupportedError as error:
            self.offences.append(f"output '{name}': {error}")
            return None
        if value is not None:
            self.offences += interface_offences("output", [_interface(name, value)], _ELEMENTS)
        return value

    def _damage(self, what: str) -> ImportModelError:
        return ImportModelError(f"'{self.name}': file is damaged: {what}")

    def _value(self, name: str, tensor: Tensor) -> Value:
        if isinstance(tensor, Constant):
            return known(name, tensor.array)
        return tensor.real(self.plan, name) if isinstance(tensor, Real) else tensor


def _asks_for_shape(node: Node) -> bool:
    return node.kind == "Shape" and len(node.inputs) == len(node.outputs) == 1


def _array_of(tensor: Tensor | None) -> Array | None:
    return tensor.array if isinstance(tensor, Constant) else None


def _interface(name: str, value: Value) -> Interface:
    return Interface(name, value.shape, value.element)


def _build(graph: Graph, planned: _Planned, name: str) -> ir.Module:
    module = ir.Module.create()
    emitter = Emitter(name)
    results = [_interface(*pair) for pair in zip(graph.outputs, planned.results, strict=True)]
    with ir.InsertionPoint(module.body):
        types = [tensor.type() for tensor in graph.inputs], [tensor.type() for tensor in results]
        function = func.FuncOp("main", types, visibility="public")
        function.arg_attrs = interface_attributes(graph.inputs)
        function.res_attrs = interface_attributes(results)
    block = function.add_entry_block([emitter.location_of(tensor.name) for tensor in graph.inputs])
    for value, argument in zip(planned.arguments, block.arguments, strict=True):
        emitter.define(value, argument)
    with ir.InsertionPoint(block):
        for value in planned.values:
            emitter.emit(value)
        func.ReturnOp([emitter.plain(value) for value in planned.results])
    return module
