"""An .onnx model divided between this compiler and ONNX Runtime."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frameworks import onnx_runtime
from qdialect.frontends.common import Array, Interface, Shape
from qdialect.frontends.onnx.importer import OnnxPlanner, read_model
from qdialect.frontends.onnx.model import ELEMENTS, Graph, Node
from qdialect.frontends.onnx.products import products
from qdialect.frontends.onnx.submodel import SubModels
from qdialect.frontends.planning.division import Division, OpenInterface, PartRefusedError, Runner, refused_nodes
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.module import module_of
from qdialect.frontends.planning.partition import Part, PartitionNode
from qdialect.frontends.planning.tensors import Constant

_NUMBERS = {element: number for number, element in ELEMENTS.items()}


class OnnxDivision(Division):
    """A model, judged node by node with the types that ONNX Runtime infers."""

    framework = onnx_runtime.FRAMEWORK.name

    def __init__(
        self, source: str | Path | bytes, *, batch: int = 1, dims: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Raises `ImportModelError` for a file that cannot be read."""
        read = read_model(source, batch=batch, dims=dims)
        self.name, self._size = read.name, read.size
        self._models = SubModels(read.proto, read.graph.inputs)
        self._graph = self._with_types(read.graph)
        self._planner = self._judged(self._graph)
        for name in self._planner.results:
            tensor = self._interface(name)
            if tensor is not None:
                self._models.declare_tensor(tensor, _NUMBERS[tensor.element])
        self._known = {name: array for name in self._planner.results if (array := self._array(name)) is not None}
        self._nodes = [node for node in self._graph.nodes if not self._is_known(node)]
        self.nodes = self._partition_nodes()
        self.inputs = [self._open(tensor.name, tensor) for tensor in self._graph.inputs]
        self.outputs = [self._open(name, self._interface(name)) for name in self._graph.outputs]
        self.constants = {name: self._known[name] for name in self._graph.outputs if name in self._known}

    def module(self, part: Part) -> ir.Module:
        nodes = tuple(self._nodes[index] for index in part.nodes)
        read = {name for node in nodes for name in node.inputs}
        constants = {name: self._known[name] for name in read if name in self._known}
        inputs = tuple(tensor for name in part.inputs if (tensor := self._interface(name)) is not None)
        planner = OnnxPlanner(Graph(nodes, inputs, part.outputs, constants, {}), self.name, self._size)
        planned = planner.judge()
        if planner.unsupported:
            reasons = refused_nodes(part, self.nodes, planner.reasons, planner.interface_reasons)
            raise PartRefusedError(reasons or dict.fromkeys(part.nodes, planner.unsupported[0]))
        return module_of(planned, self.name, None)

    def runner(self, part: Part, threads: int) -> Runner:
        gives = [name for index in part.nodes for name in self._nodes[index].outputs if name]
        content = self._models.extract(gives, part.inputs, part.outputs, self._known)
        return onnx_runtime.load(content, part.inputs, part.outputs, threads)

    def _judged(self, graph: Graph) -> OnnxPlanner:
        planner = OnnxPlanner(graph, self.name, self._size)
        planner.judge()
        return planner

    def _with_types(self, graph: Graph) -> Graph:
        """`graph` with what ONNX Runtime says of values whose types are not known otherwise."""
        results = self._judged(graph).results
        unknown = [name for node in graph.nodes for name in node.outputs if name and results[name] is None]
        infos = onnx_runtime.types(lambda: self._models.whole(unknown, graph.constants)) if unknown else []
        self._models.declare(infos)
        return graph.declaring(infos)

    def _interface(self, name: str) -> Interface | None:
        """What crosses as `name`, as far as the plan knows it."""
        result = self._planner.results.get(name)
        if result is None or isinstance(result, tuple | Constant):
            return None
        return Interface(name, result.shape, result.element if isinstance(result, Value) else "f32")

    def _array(self, name: str) -> Array | None:
        result = self._planner.results[name]
        if isinstance(result, Constant):
            return result.array
        return result.data if isinstance(result, Value) else None

    def _is_known(self, node: Node) -> bool:
        return all(name in self._known for name in node.outputs if name)

    def _shape(self, name: str) -> Shape | None:
        known = self._interface(name)
        if known is not None:
            return known.shape
        return self._known[name].shape if name in self._known else None

    def _partition_nodes(self) -> list[PartitionNode]:
        computed = {tensor.name for tensor in self._graph.inputs} | {n for node in self._nodes for n in node.outputs}
        copied: set[str] = set()
        found: list[PartitionNode] = []
        for node in self._nodes:
            gives = tuple(filter(None, node.outputs))
            reads = tuple(n for n in self._models.reads(gives[0]) if n in computed and n not in self._known)
            reason = self._planner.reasons.get(node.title, "")
            # What reads constants alone is one: frameworks fold it.
            is_copied = not reason and (node.kind.endswith("DequantizeLinear") or all(name in copied for name in reads))
            if is_copied and all(name in copied for name in reads):
                copied.update(gives)
            found.append(self._partition_node(node, gives, reads, reason, is_copied=is_copied))
        return found

    def _partition_node(
        self, node: Node, gives: Sequence[str], reads: Sequence[str], reason: str, *, is_copied: bool
    ) -> PartitionNode:
        shapes = {name: self._shape(name) for name in (*node.inputs, *gives) if name}
        given = [(name, shapes[name]) for name in gives]
        return PartitionNode(
            node.title,
            tuple(reads),
            tuple(gives),
            products(node, [shapes.get(name) for name in node.inputs], shapes[gives[0]]),
            sum(math.prod(shape) for _, shape in given if shape is not None),
            reason,
            is_copied=is_copied,
            ends_group=node.kind.endswith("QuantizeLinear") and not node.kind.endswith("DequantizeLinear"),
            is_narrow=all((tensor := self._interface(name)) is not None and tensor.element != "f32" for name in gives),
        )

    def _open(self, name: str, tensor: Interface | None) -> OpenInterface:
        if tensor is not None and tensor.element in NUMPY_DTYPES:
            return OpenInterface(name, tensor.shape, NUMPY_DTYPES[tensor.element].name)
        if name in self._known:
            return OpenInterface(name, self._known[name].shape, self._known[name].dtype.name)
        return self._models.open_interface(name)
