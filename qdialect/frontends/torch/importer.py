"""From a quantized PyTorch program to a `qnn` module with PyTorch's own arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

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
from qdialect.frontends.torch.model import Array, Graph, Node
from qdialect.frontends.torch.operators import Call, planner_of
from qdialect.frontends.torch.reader import load_archive, read_program
from qdialect.frontends.torch.tensors import Computed, Constant, Plan, Real, Result, Tensor, known

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_ELEMENTS = ("i8", "ui8", "i16", "i32", "f32")
_NAME = "program"
# Its constant operand stays one: codes that mean real numbers.
_DEQUANTIZE = "quantized_decomposed.dequantize"


def import_torch(source: ExportedProgram | str | Path | bytes, context: ir.Context | None = None) -> ir.Module:
    """A verified module with one public function ``@main`` from an exported program that PT2E quantized.

    `source` is what `torch.export.export` gives for a model after ``convert_pt2e``, the path of an archive that
    `torch.export.save` wrote (``.pt2``), or its content.  Arguments and results keep the program's order, shapes and
    types; their attribute is `qnn.name`.  Operators between ``dequantize`` and ``quantize`` become integer ops and
    tables; what has none runs in float32.  Every op is located at the name of the node that it computes.

    Raises `ImportModelError` for a damaged archive, where the package `torch` is not installed, and for a program with
    nodes that the dialect cannot express; then every such node is a note.
    """
    graph, name = _read(source)
    return import_graph(graph, name, context)


def nodes_of(source: ExportedProgram | str | Path | bytes) -> tuple[GraphNode, ...]:
    """The nodes of a program, supported or not; raises `ImportModelError` for one that cannot be read."""
    graph, _ = _read(source)
    return tuple(GraphNode(node.title, node.kind, node.refs(), (node.name,)) for node in graph.nodes)


def _read(source: ExportedProgram | str | Path | bytes) -> tuple[Graph, str]:
    if not isinstance(source, str | Path | bytes):
        return read_program(source), _NAME
    content, name = content_of(source, "model.pt2")
    try:
        return read_program(load_archive(content)), name
    except ImportModelError as error:
        raise ImportModelError(f"'{name}': {error}") from error


def import_graph(graph: Graph, name: str, context: ir.Context | None = None) -> ir.Module:
    """The module of a graph, as `import_torch`; `name` is what messages call it."""
    planned = _Planner(graph, name).run()
    with context or make_context(), ir.Location.file(name, 0, 0):
        try:
            module = _build(graph, planned, name)
            verify(module)
        except (ConstraintError, TypeError) as error:
            raise ImportModelError(f"'{name}': model is damaged: {error}") from error
        except VerificationError as error:
            raise ImportModelError(f"'{name}': model is damaged: {error}", error.diagnostics) from error
    return module


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
    plan: Plan = field(default_factory=Plan)
    results: dict[str, Result | None] = field(default_factory=dict[str, "Result | None"])
    offences: list[str] = field(default_factory=list[str])

    def run(self) -> _Planned:
        self.results.update({key: Constant(array) for key, array in self.graph.constants.items()})
        arguments = tuple(Value(tensor.name, tensor.shape, tensor.element) for tensor in self.graph.inputs)
        self.offences += interface_offences("input", self.graph.inputs, _ELEMENTS)
        for value in arguments:
            self.results[value.name] = Computed(value.shape, value) if value.element == "f32" else value
        for node in _live(self.graph):
            self._visit(node)
        results = [self._output(name) for name in self.graph.outputs]
        refuse(self.name, self.offences)
        return _Planned(arguments, tuple(self.plan.values), tuple(value for value in results if value is not None))

    def _visit(self, node: Node) -> None:
        self.results[node.name] = None
        inputs = {name: found for name in node.refs() if (found := self.results[name]) is not None}
        try:
            if len(inputs) < len(node.refs()):
                # What depends on an offender cannot be planned, but its operator can be one too.
                planner_of(node.kind)
            else:
                self.results[node.name] = self._result(node, inputs)
        except UnsupportedError as error:
            self.offences.append(f"{node.title}: {error}")

    def _result(self, node: Node, inputs: dict[str, Result]) -> Result:
        arrays = {name: found.array for name, found in inputs.items() if isinstance(found, Constant)}
        if len(arrays) == len(inputs) and not node.kind.startswith(_DEQUANTIZE):
            return Constant(_folded(node, arrays))
        planner = planner_of(node.kind)
        result = planner(Call(self.plan, node, inputs))
        _check_shape(node, result)
        return result

    def _output(self, name: str) -> Value | None:
        result = self.results[name]
        try:
            value = self._value(name, result) if result is not None else None
        except UnsupportedError as error:
            self.offences.append(f"output '{name}': {error}")
            return None
        if value is not None:
            self.offences += interface_offences("output", [_interface(name, value)], _ELEMENTS)
        return value

    def _value(self, name: str, result: Result) -> Value:
        require(not isinstance(result, tuple), "must be one tensor")
        if isinstance(result, Constant):
            return known(name, result.array)
        if isinstance(result, Real):
            return result.real(self.plan, name)
        assert isinstance(result, Value)
        return result


def _live(graph: Graph) -> list[Node]:
    """The nodes on which results depend, in order."""
    needed = set(graph.outputs)
    found: list[Node] = []
    for node in reversed(graph.nodes):
        if node.name in needed:
            needed.update(node.refs())
            found.append(node)
    return found[::-1]


def _folded(node: Node, arrays: dict[str, Array]) -> Array:
    """What PyTorch itself computes of constants."""
    try:
        return node.evaluate(arrays)
    except (ImportModelError, RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise UnsupportedError(f"operator is not supported on constants: {error}") from error


def _check_shape(node: Node, result: Result) -> None:
    """The front end and PyTorch agree on what the node gives."""
    tensors: tuple[Tensor, ...] = result if isinstance(result, tuple) else (result,)
    for tensor, output in zip(tensors, node.outputs, strict=False):
        holds = tuple(tensor.shape) == output.shape
        require(holds, f"result must have shape {list(output.shape)}, but got {list(tensor.shape)}")


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
