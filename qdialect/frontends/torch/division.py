"""Divides a PyTorch program, exported or captured by Dynamo, between this compiler and PyTorch's own operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import getitem
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.building.checks import Array, Interface, Shape, Source
from qdialect.frontends.building.extents import NO_DIMS, Dims, Extents
from qdialect.frontends.frameworks import PYTORCH
from qdialect.frontends.planning import partition
from qdialect.frontends.planning.planner import PlannedDivision
from qdialect.frontends.torch import eager
from qdialect.frontends.torch.importer import TorchPlanner, live_nodes, read_graph
from qdialect.frontends.torch.operators.tensors import RunTimeScale
from qdialect.frontends.torch.program.dynamo import Lowered
from qdialect.frontends.torch.program.functionalization import is_in_place
from qdialect.frontends.torch.program.model import FLOAT8, Graph, Node, Ref, held_element
from qdialect.frontends.torch.program.reader import read_captured
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import CompileError, ImportModelError

if TYPE_CHECKING:
    from torch.export import ExportedProgram


# A PyTorch program divided between this compiler and PyTorch's own operators.

_DEQUANTIZE = "quantized_decomposed.dequantize_"
_QUANTIZE = "quantized_decomposed.quantize_"
_CHANGES = "the program changes memory that it reads again"


class TorchDivision(PlannedDivision):
    """A program, judged node by node with the types that its tracer noted."""

    framework = PYTORCH.name

    def __init__(
        self, source: ExportedProgram | Source | Graph, *, trust: bool = False, batch: int = 1, dims: Dims = NO_DIMS
    ) -> None:
        """Raises `ImportModelError` for a program that cannot be read; `batch` and `dims` as `import_torch`."""
        if isinstance(source, Graph):
            graph, self.name = source, "program"
        else:
            graph, self.name = read_graph(source, Extents(batch, dims), trust=trust)
        self.judged = TorchPlanner(graph.opened(), self.name)
        self.judged.judge()
        nodes, held = live_nodes(graph.opened()), {name: graph.constants[name] for name in graph.written}
        writing = [node for node in nodes if is_in_place(node.kind) and node.title in self.judged.reasons]
        is_narrow = any(held_element(array) in FLOAT8 for array in held.values())
        self._changes = bool(writing or graph.entangled or is_narrow)
        """Whether the program changes memory that it reads again: then PyTorch runs it as a whole."""
        if self._changes:
            self.judged = TorchPlanner(graph, self.name)
            self.judged.judge()
            nodes = live_nodes(graph)
            self.hides_state = bool(held) or any(_is_of(graph, node) for node in writing)
        else:
            self.states = {name: (array, graph.written[name]) for name, array in held.items()}
        self._graph = graph
        names = graph.constants if self._changes else self.judged.results
        self.known = {name: array for name in names if (array := self.array_of(name)) is not None}
        self._nodes = [node for node in nodes if node.name not in self.known]
        self._noted = {node.name: node.outputs for node in self._nodes}
        self.nodes = partition.with_copies(map(self._partition_node, self._nodes))
        self.inputs = [_open(tensor.name, tensor.shape, tensor.element) for tensor in graph.inputs]
        self.outputs = [self._output(name) for name in graph.outputs]
        given = (*graph.outputs, *(result for _, result in self.states.values()))
        self.constants = {name: _shown(self.known[name]) for name in given if name in self.known}

    def module(self, part: partition.Part) -> ir.Module:
        nodes = tuple(self._nodes[index] for index in part.nodes)
        read = {name for node in nodes for name in node.refs()}
        constants = {name: self.known[name] for name in read if name in self.known}
        inputs = {name: self.interface(name) for name in part.inputs}
        unknown = {name: "its type is not known" for name, tensor in inputs.items() if tensor is None}
        if unknown:
            raise partition.PartRefusedError(partition.refused_nodes(part, self.nodes, {}, unknown))
        taken = tuple(tensor for tensor in inputs.values() if tensor is not None)
        planner = TorchPlanner(Graph(nodes, taken, part.outputs, constants), self.name)
        planned = planner.judge()
        return self.module_of(part, planner, planned)

    def runner(self, part: partition.Part, threads: int) -> partition.Runner:
        # How many threads PyTorch takes is the process's.
        del threads
        if self._changes:
            return self._whole_runner(part)
        nodes = [self._nodes[index] for index in part.nodes]
        read = {name for node in nodes for name in node.refs()}
        constants = {name: self.known[name] for name in read if name in self.known}
        elements = {tensor.name: tensor.element for tensor in self._graph.inputs}
        elements |= {name: outputs[0].element for name, outputs in self._noted.items() if len(outputs) == 1}
        return eager.runner(nodes, part.inputs, part.outputs, constants, elements)

    def _whole_runner(self, part: partition.Part) -> partition.Runner:
        """Of the program, whose inputs and outputs stand in the order of the part."""
        run, graph = eager.whole_runner(self._graph), self._graph
        places = [part.inputs.index(tensor.name) if tensor.name in part.inputs else None for tensor in graph.inputs]
        empty = [np.zeros(tensor.shape, NUMPY_DTYPES.get(tensor.element, np.float32)) for tensor in graph.inputs]

        def call(arrays: Sequence[Array]) -> Sequence[Array]:
            given = [empty[i] if place is None else arrays[place] for i, place in enumerate(places)]
            found = dict(zip(graph.outputs, run(given), strict=True))
            return [found[name] for name in part.outputs]

        return call

    def interface(self, name: str) -> Interface | None:
        """The value that crosses as `name`, as far as the plan knows it."""
        # A scale of run time is float64 for PyTorch, and no tensor of the dialect's.
        return None if isinstance(self.judged.results.get(name), RunTimeScale) else super().interface(name)

    def _output(self, name: str) -> partition.OpenInterface:
        tensor = self.interface(name)
        if tensor is not None:
            return _open(name, tensor.shape, tensor.element)
        if name in self.known:
            return _open(name, self.known[name].shape, held_element(self.known[name]))
        given = next((t for t in self._graph.inputs if t.name == name), None)
        (output,) = (given,) if given is not None else self._noted[name]
        return _open(name, output.shape, output.element)

    def _partition_node(self, node: Node) -> partition.PartitionNode:
        tensor = self.interface(node.name)
        reason = self.judged.reasons.get(node.title, _CHANGES if self._changes else "")
        return partition.PartitionNode(
            node.title,
            tuple(name for name in node.refs() if name not in self.known),
            (node.name,),
            products(node, self.shape_of),
            sum(math.prod(output.shape) for output in node.outputs),
            reason,
            is_copied=not reason and node.kind.startswith(_DEQUANTIZE),
            # One of several results stays with the node that gives them.
            ends_group=node.kind.startswith(_QUANTIZE) or node.kind == "getitem",
            is_narrow=tensor is None or tensor.element != "f32",
        )


def _is_of(graph: Graph, node: Node) -> bool:
    """Whether a node may write to a constant: to what it reads first, or to what that was taken of."""
    nodes = {one.name: one for one in graph.nodes}
    name = next(iter(node.refs()), "")
    while name in nodes:
        name = next(iter(nodes[name].refs()), "")
    return name in graph.constants


def _shown(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.name in FLOAT8 else array


def _open(name: str, shape: Shape, element: str) -> partition.OpenInterface:
    """float8 numbers are float32 for callers, which has all their values."""
    dtype = NUMPY_DTYPES[element].name if element in NUMPY_DTYPES else element
    return partition.OpenInterface(name, shape, "float32" if element in FLOAT8 else dtype)


# How many products a node sums up, from the shapes of what it reads and gives.

ShapeOf = Callable[[str], Shape | None]
"""The shape of what a name stands for."""

_BY_ROWS = {
    "aten.linear.default": "input",
    "aten.matmul.default": "self",
    "aten.mm.default": "self",
    "aten.bmm.default": "self",
    "aten.addmm.default": "mat1",
}
_CONVOLUTIONS = ("aten.conv1d.", "aten.conv2d.", "aten.conv3d.", "aten.convolution.")


def products(node: Node, shape_of: ShapeOf) -> int:
    """Of one call, 0 for a node that sums up none and for one whose shapes are not known."""
    elements = sum(math.prod(output.shape) for output in node.outputs)
    if node.kind in _BY_ROWS:
        rows = _shape(node, _BY_ROWS[node.kind], shape_of)
        return elements * rows[-1] if rows else 0
    weight = _shape(node, "weight", shape_of)
    if node.kind.startswith("aten.conv_transpose") or node.arguments.get("transposed") is True:
        return math.prod(_shape(node, "input", shape_of)) * math.prod(weight[1:]) if weight else 0
    return elements * math.prod(weight[1:]) if weight and node.kind.startswith(_CONVOLUTIONS) else 0


def _shape(node: Node, argument: str, shape_of: ShapeOf) -> Shape:
    value = node.arguments.get(argument)
    return (shape_of(value.name) or ()) if isinstance(value, Ref) else ()


# Graphs that Dynamo captured, divided by PyTorch's own partitioner.

Compiled = TypeVar("Compiled")
_DEQUANTIZE_CALL = "dequantize_per_"
_CHECK_OF_TYPES = "aten._assert_tensor_metadata"
_UNSEEN = "is used by a node that computes no tensor of the dialect"
_PREFIX = "qdialect_region_"


@dataclass(frozen=True)
class Fused(Generic[Compiled]):
    """A part that is one module of the captured graph, called `name`.

    `arguments` and `results` are the names, in the graph as it was, of what the module takes and gives.
    """

    name: str
    part: partition.Part
    compiled: Compiled
    arguments: tuple[str, ...]
    results: tuple[str, ...]


class CapturedDivision(Generic[Compiled]):
    """A captured module of which PyTorch's eager mode runs what cannot be compiled."""

    def __init__(self, graph: Lowered, examples: Sequence[Any], compile_: Callable[[ir.Module], Compiled]) -> None:
        """Raises `ImportModelError` for a graph that cannot be read."""
        self.module = _with_copies(graph.module)
        """The whole graph; a dequantization is there once for each reader, and types need no check."""
        self.division = TorchDivision(read_captured(self.module, examples, written=graph.written))
        self.reasons = {i: node.reason for i, node in enumerate(self.division.nodes) if node.reason}
        """Why nodes of the division are not compiled, by their indices."""
        self._compile_ = compile_
        self._indices = {node.gives[0]: index for index, node in enumerate(self.division.nodes)}
        self._done: dict[frozenset[str], tuple[partition.Part, Compiled]] = {}

    def fuse(self) -> list[Fused[Compiled]]:
        """Make a module of every compiled part, in the order of execution.

        The partitioner proposes again and again, until all that it proposes is compiled.
        """
        packages: Any = import_module("torch.fx.passes.infra.partitioner")
        supports: Any = import_module("torch.fx.passes.operator_support")
        support = supports.create_op_support(self._is_compiled)
        while True:
            partitioner = packages.CapabilityBasedPartitioner(self.module, support, allows_single_node_partition=True)
            proposed = partitioner.propose_partitions()
            refused = self._refused([frozenset(node.name for node in one.nodes) for one in proposed])
            if not refused:
                return list(self._fused(partitioner.fuse_partitions(proposed, prefix=_PREFIX)))
            self.reasons.update(refused)

    def _is_compiled(self, modules: object, node: Any) -> bool:
        """In the form in which the partitioner asks."""
        del modules
        index = self._indices.get(str(node.name))
        return index is not None and index not in self.reasons

    def _refused(self, proposed: Sequence[frozenset[str]]) -> dict[int, str]:
        """Compile what is proposed; why nodes of it cannot be."""
        found: dict[int, str] = {}
        for names in proposed:
            if names not in self._done:
                found.update(self._compile(names))
        return found

    def _compile(self, names: frozenset[str]) -> dict[int, str]:
        if not names <= self._indices.keys():
            # The partitioner puts what takes a result of several to the node that gives them.
            return {self._indices[name]: _UNSEEN for name in names & self._indices.keys()}
        part = self._part(names)
        if sum(self.division.nodes[index].work for index in part.nodes) < partition.least_work(self.division.nodes):
            return dict.fromkeys(part.nodes, partition.TOO_SMALL)
        try:
            self._done[names] = part, self._compile_(self.division.module(part))
        except partition.PartRefusedError as error:
            return dict(error.reasons)
        except (ImportModelError, CompileError) as error:
            return dict.fromkeys(part.nodes, error.message)
        return {}

    def _part(self, names: frozenset[str]) -> partition.Part:
        nodes = self.division.nodes
        indices = sorted(self._indices[name] for name in names)
        read = dict.fromkeys(name for index in indices for name in nodes[index].reads if name not in names)
        # What nothing of the division reads, a check does, may be read by the rest of the captured graph.
        readers = {str(node.name): [str(user.name) for user in node.users] for node in self.module.graph.nodes}
        given = (nodes[index].gives[0] for index in indices)
        return partition.Part(
            tuple(indices), True, tuple(read), tuple(name for name in given if set(readers[name]) - names)
        )

    def _fused(self, module: Any) -> Iterator[Fused[Compiled]]:
        results: dict[str, tuple[str, ...]] = {}
        for node in module.graph.nodes:
            name = str(node.target)
            if node.op != "call_module" or not name.startswith(_PREFIX):
                continue
            inner = getattr(module, name).graph
            given: Any = inner.output_node().args[0]
            listed = cast("tuple[Any, ...]", given) if isinstance(given, tuple) else (given,)
            results[name] = tuple(str(one.name) for one in listed)
            part, compiled = self._done[frozenset(one.name for one in inner.nodes if one.op.startswith("call"))]
            arguments = tuple(_original(argument, results) for argument in node.args)
            yield Fused(name, part, compiled, arguments, results[name])


def _original(argument: Any, results: dict[str, tuple[str, ...]]) -> str:
    """The name of an argument before modules took the place of nodes."""
    if argument.op == "call_module" and argument.target in results:
        return results[argument.target][0]
    source = argument.args[0] if argument.target is getitem else None
    several = results.get(str(getattr(source, "target", "")), ())
    # A module of one result is not indexed by the partitioner but, perhaps, by the model.
    return several[int(argument.args[1])] if len(several) > 1 else str(argument.name)


def _with_copies(module: Any) -> Any:
    """`module` with a dequantization for each reader, so that every part has its own, and without checks of types.

    Those were made when it was traced, and would make results of what they read.
    """
    fx: Any = import_module("torch.fx")
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    for node in list(graph.nodes):
        if node.op == "call_function" and _DEQUANTIZE_CALL in str(node.target):
            for reader in list(node.users)[1:]:
                with graph.inserting_before(reader):
                    copied = graph.node_copy(node)
                reader.replace_input_with(node, copied)
        elif node.op == "call_function" and str(node.target).startswith(_CHECK_OF_TYPES):
            graph.erase_node(node)
    return fx.GraphModule(module, graph)
