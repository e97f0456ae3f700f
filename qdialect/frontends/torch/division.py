"""A PyTorch program divided between this compiler and PyTorch's own operators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frameworks.eager import FRAMEWORK
from qdialect.frontends.common import Array, Interface, Shape
from qdialect.frontends.extents import Extents
from qdialect.frontends.planning.division import Division, OpenInterface, PartRefusedError, Runner, refused_nodes
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.module import module_of
from qdialect.frontends.planning.partition import Part, PartitionNode
from qdialect.frontends.planning.tensors import Constant
from qdialect.frontends.torch import eager
from qdialect.frontends.torch.calls import widened
from qdialect.frontends.torch.importer import TorchPlanner, live_nodes, read_graph
from qdialect.frontends.torch.inplace import is_in_place
from qdialect.frontends.torch.model import NARROW, Graph, Node, held_element
from qdialect.frontends.torch.products import products
from qdialect.frontends.torch.run_time import RunTimeScale

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_DEQUANTIZE = "quantized_decomposed.dequantize_"
_QUANTIZE = "quantized_decomposed.quantize_"
_CHANGES = "the program changes memory that it reads again"


class TorchDivision(Division):
    """A program, judged node by node with the types that its tracer noted."""

    framework = FRAMEWORK.name

    def __init__(
        self,
        source: ExportedProgram | str | Path | bytes | Graph,
        *,
        trust: bool = False,
        batch: int = 1,
        dims: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Raises `ImportModelError` for a program that cannot be read; `batch` and `dims` as `import_torch`."""
        if isinstance(source, Graph):
            graph, self.name = source, "program"
        else:
            graph, self.name = read_graph(source, Extents(batch, dims), trust=trust)
        self._graph = graph
        self._planner = TorchPlanner(graph, self.name)
        self._planner.judge()
        nodes = live_nodes(graph)
        self._changes = bool(graph.written) or any(
            is_in_place(node.kind) and node.title in self._planner.reasons for node in nodes
        )
        """Whether the program changes memory that it reads again: then PyTorch runs it as a whole."""
        names = graph.constants if self._changes else self._planner.results
        self._known = {name: array for name in names if (array := self._array(name)) is not None}
        self._nodes = [node for node in nodes if node.name not in self._known]
        self._noted = {node.name: node.outputs for node in self._nodes}
        self.nodes = self._partition_nodes()
        self.inputs = [_open(tensor.name, tensor.shape, tensor.element) for tensor in graph.inputs]
        self.outputs = [self._output(name) for name in graph.outputs]
        self.constants = {name: widened(self._known[name]) for name in graph.outputs if name in self._known}

    def module(self, part: Part) -> ir.Module:
        nodes = tuple(self._nodes[index] for index in part.nodes)
        read = {name for node in nodes for name in node.refs()}
        constants = {name: self._known[name] for name in read if name in self._known}
        inputs = {name: self._interface(name) for name in part.inputs}
        unknown = {name: "its type is not known" for name, tensor in inputs.items() if tensor is None}
        if unknown:
            raise PartRefusedError(refused_nodes(part, self.nodes, {}, unknown))
        taken = tuple(tensor for tensor in inputs.values() if tensor is not None)
        planner = TorchPlanner(Graph(nodes, taken, part.outputs, constants), self.name)
        planned = planner.judge()
        if planner.unsupported:
            reasons = refused_nodes(part, self.nodes, planner.reasons, planner.interface_reasons)
            raise PartRefusedError(reasons or dict.fromkeys(part.nodes, planner.unsupported[0]))
        return module_of(planned, self.name, None)

    def runner(self, part: Part, threads: int) -> Runner:
        # How many threads PyTorch takes is the process's.
        del threads
        if self._changes:
            return self._whole_runner(part)
        nodes = [self._nodes[index] for index in part.nodes]
        read = {name for node in nodes for name in node.refs()}
        constants = {name: self._known[name] for name in read if name in self._known}
        elements = {tensor.name: tensor.element for tensor in self._graph.inputs}
        elements |= {name: outputs[0].element for name, outputs in self._noted.items() if len(outputs) == 1}
        return eager.runner(nodes, part.inputs, part.outputs, constants, elements)

    def _whole_runner(self, part: Part) -> Runner:
        """Of the program, whose inputs and outputs stand in the order of the part."""
        run, graph = eager.whole_runner(self._graph), self._graph
        places = [part.inputs.index(tensor.name) if tensor.name in part.inputs else None for tensor in graph.inputs]
        empty = [np.zeros(tensor.shape, NUMPY_DTYPES.get(tensor.element, np.float32)) for tensor in graph.inputs]

        def call(arrays: Sequence[Array]) -> Sequence[Array]:
            given = [empty[i] if place is None else arrays[place] for i, place in enumerate(places)]
            found = dict(zip(graph.outputs, run(given), strict=True))
            return [found[name] for name in part.outputs]

        return call

    def _array(self, name: str) -> Array | None:
        result = self._planner.results[name]
        if isinstance(result, Constant):
            return result.array
        return result.data if isinstance(result, Value) else None

    def _interface(self, name: str) -> Interface | None:
        """What crosses as `name`, as far as the plan knows it."""
        result = self._planner.results.get(name)
        # A scale of run time is float64 for PyTorch, and no tensor of the dialect's.
        if result is None or isinstance(result, tuple | Constant | RunTimeScale):
            return None
        return Interface(name, result.shape, result.element if isinstance(result, Value) else "f32")

    def _output(self, name: str) -> OpenInterface:
        tensor = self._interface(name)
        if tensor is not None:
            return _open(name, tensor.shape, tensor.element)
        if name in self._known:
            return _open(name, self._known[name].shape, held_element(self._known[name]))
        given = next((t for t in self._graph.inputs if t.name == name), None)
        (output,) = (given,) if given is not None else self._noted[name]
        return _open(name, output.shape, output.element)

    def _shape(self, name: str) -> Shape | None:
        tensor = self._interface(name)
        if tensor is not None:
            return tensor.shape
        return self._known[name].shape if name in self._known else None

    def _partition_nodes(self) -> list[PartitionNode]:
        copied: set[str] = set()
        found: list[PartitionNode] = []
        for node in self._nodes:
            reads = tuple(name for name in node.refs() if name not in self._known)
            reason = self._planner.reasons.get(node.title, _CHANGES if self._changes else "")
            of_copies = all(name in copied for name in reads)
            is_copied = not reason and (node.kind.startswith(_DEQUANTIZE) or of_copies)
            if is_copied and of_copies:
                copied.add(node.name)
            found.append(self._partition_node(node, reads, reason, is_copied=is_copied))
        return found

    def _partition_node(self, node: Node, reads: Sequence[str], reason: str, *, is_copied: bool) -> PartitionNode:
        tensor = self._interface(node.name)
        return PartitionNode(
            node.title,
            tuple(reads),
            (node.name,),
            products(node, self._shape),
            sum(math.prod(output.shape) for output in node.outputs),
            reason,
            is_copied=is_copied,
            # One of several results stays with the node that gives them.
            ends_group=node.kind.startswith(_QUANTIZE) or node.kind == "getitem",
            is_narrow=tensor is None or tensor.element != "f32",
        )


def _open(name: str, shape: Shape, element: str) -> OpenInterface:
    """Floats of a type that NumPy lacks are float32 for callers, which has all their values."""
    dtype = NUMPY_DTYPES[element].name if element in NUMPY_DTYPES else element
    return OpenInterface(name, shape, "float32" if element in NARROW else dtype)
