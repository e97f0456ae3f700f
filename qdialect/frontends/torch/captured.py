"""Graphs that Dynamo captured, divided by PyTorch's own partitioner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import getitem
from typing import Any, Generic, TypeVar, cast

from qdialect._mlir import ir
from qdialect.diagnostics import CompileError, ImportModelError
from qdialect.frontends.planning.division import PartRefusedError
from qdialect.frontends.planning.partition import TOO_SMALL, Part, least_work
from qdialect.frontends.torch.division import TorchDivision
from qdialect.frontends.torch.lowered import Lowered
from qdialect.frontends.torch.reader import read_captured

Compiled = TypeVar("Compiled")
_DEQUANTIZE = "dequantize_per_"
_CHECK_OF_TYPES = "aten._assert_tensor_metadata"
_UNSEEN = "is used by a node that computes no tensor of the dialect"
_PREFIX = "qdialect_region_"


@dataclass(frozen=True)
class Fused(Generic[Compiled]):
    """A part that is one module of the captured graph, called `name`.

    `arguments` and `results` are the names, in the graph as it was, of what the module takes and gives.
    """

    name: str
    part: Part
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
        self._done: dict[frozenset[str], tuple[Part, Compiled]] = {}

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
        if sum(self.division.nodes[index].work for index in part.nodes) < least_work(self.division.nodes):
            return dict.fromkeys(part.nodes, TOO_SMALL)
        try:
            self._done[names] = part, self._compile_(self.division.module(part))
        except PartRefusedError as error:
            return dict(error.reasons)
        except (ImportModelError, CompileError) as error:
            return dict.fromkeys(part.nodes, error.message)
        return {}

    def _part(self, names: frozenset[str]) -> Part:
        nodes = self.division.nodes
        indices = sorted(self._indices[name] for name in names)
        read = dict.fromkeys(name for index in indices for name in nodes[index].reads if name not in names)
        # What nothing of the division reads, a check does, may be read by the rest of the captured graph.
        readers = {str(node.name): [str(user.name) for user in node.users] for node in self.module.graph.nodes}
        given = (nodes[index].gives[0] for index in indices)
        return Part(tuple(indices), True, tuple(read), tuple(name for name in given if set(readers[name]) - names))

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
    """What an argument was called before modules took the place of nodes."""
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
        if node.op == "call_function" and _DEQUANTIZE in str(node.target):
            _copy_for_readers(graph, node)
        elif node.op == "call_function" and str(node.target).startswith(_CHECK_OF_TYPES):
            graph.erase_node(node)
    return fx.GraphModule(module, graph)


def _copy_for_readers(graph: Any, node: Any) -> None:
    for reader in list(node.users)[1:]:
        with graph.inserting_before(reader):
            copied = graph.node_copy(node)
        reader.replace_input_with(node, copied)
