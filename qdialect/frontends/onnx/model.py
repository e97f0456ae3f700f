"""The parts of an .onnx file that the importer needs, as checked Python values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, TypeVar

from qdialect.frontends.building.checks import Array, Interface, Shape

if TYPE_CHECKING:
    import onnx


ELEMENTS = {1: "f32", 2: "ui8", 3: "i8", 4: "ui16", 5: "i16", 6: "i32", 7: "i64", 9: "i1", 10: "f16", 16: "bf16"}
"""Names of the element types by their numbers in the schema."""

F32 = 1
"""The number of that type."""


def element_name(number: int) -> str:
    """The name of an element type in messages: the dialect's, or that of the schema (``bool``)."""
    from onnx import TensorProto

    known = number in ELEMENTS or number in TensorProto.DataType.values()
    return ELEMENTS.get(number) or (TensorProto.DataType.Name(number).lower() if known else f"element type {number}")


class Attributes(Mapping[str, Any]):
    """Attributes of a node that is planned; those that nobody asks for are known afterwards."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._asked = set[str]()

    def __getitem__(self, name: str) -> Any:
        self._asked.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def unread(self) -> dict[str, Any]:
        """Those that nobody has asked for."""
        return {name: value for name, value in self._values.items() if name not in self._asked}


@dataclass(frozen=True)
class Node:
    """A node of the graph; `kind` has the operator's domain in front unless it is the standard one.

    An omitted input is an empty name. Attributes are integers, floats, strings, arrays and lists of these.  `version`
    is that of the operator set the operator is of.
    """

    index: int
    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    version: int
    captured: tuple[str, ...] = ()
    """Names that graphs inside the node read."""

    @property
    def title(self) -> str:
        """How messages call the node: its index, operator, and name or first output."""
        called = self.name or next(iter(self.outputs), "")
        return f"node {self.index} {self.kind}" + (f" ('{called}')" if called else "")


@dataclass(frozen=True)
class Graph:
    """Nodes in the order of execution; inputs that have initial values are constants."""

    nodes: tuple[Node, ...]
    inputs: tuple[Interface, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Array]
    unsupported: Mapping[str, str]
    """Why the constants of these names cannot be read; a model may hold them as long as no node needs them."""
    declared: Mapping[str, Interface] = field(default_factory=dict[str, Interface])
    """The declared types and shapes of values between nodes."""
    results: Mapping[str, Shape] = field(default_factory=dict[str, Shape])
    """The declared shapes of outputs, those whose extents are known or named as those of inputs."""

    def declaring(self, infos: Iterable[onnx.ValueInfoProto]) -> Graph:
        """The same with more of that; infos that leave something open are left out."""
        found = (known_tensor(info.name, info.type) for info in infos)
        return replace(self, declared={**self.declared, **{tensor.name: tensor for tensor in found if tensor}})


def known_tensor(name: str, type_: onnx.TypeProto) -> Interface | None:
    """A tensor whose element type and extents are all known."""
    tensor = type_.tensor_type
    extents = [entry.dim_value if entry.HasField("dim_value") else -1 for entry in tensor.shape.dim]
    is_known = tensor.HasField("shape") and min(extents, default=0) >= 0 and tensor.elem_type in ELEMENTS
    return Interface(name, tuple(extents), ELEMENTS[tensor.elem_type]) if is_known else None


# Nodes in an order in which they can be executed: a file may hold them in any.

T = TypeVar("T")


def in_order(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """`nodes`, each after those that give what it and the graphs in it read; of others the first of the file is first.

    Nodes on a cycle, and what depends on them, come last as they stand in the file.
    """
    giver = {name: index for index, node in reversed(list(enumerate(nodes))) for name in node.outputs if name}
    waits = [{giver[name] for name in (*node.inputs, *node.captured) if name in giver} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for index, needed in enumerate(waits):
        for other in needed:
            readers[other].append(index)
    ready = [index for index, needed in enumerate(waits) if not needed]
    heapify(ready)
    order: list[int] = []
    while ready:
        found = heappop(ready)
        order.append(found)
        for reader in readers[found]:
            waits[reader].discard(found)
            if not waits[reader]:
                heappush(ready, reader)
    done = set(order)
    return tuple(nodes[index] for index in (*order, *(i for i in range(len(nodes)) if i not in done)))


def callees_first(calls: Mapping[T, Sequence[T]]) -> list[T] | None:
    """The functions of `calls`, which maps each to its callees, in order, callees first; None for a cycle."""
    sorter = TopologicalSorter(calls)
    try:
        return list(sorter.static_order())
    except CycleError:
        return None


# Who gives the tensors of a graph, and who reads them.

_DOMAIN = "com.microsoft."
NOTHING = ("Identity", "Dropout")
"""Operators that ONNX Runtime drops."""
MOVEMENTS = ("MaxPool", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice")
"""Operators that ONNX Runtime moves quantizations and dequantizations through."""


class Readers:
    """The givers of tensors, and how many readers they have once each has a DequantizeLinear of its own."""

    def __init__(self, graph: Graph) -> None:
        self._constants = graph.constants
        self._giver = {name: node for node in graph.nodes for name in node.outputs}
        self._reading = defaultdict[str, list[Node]](list)
        for node in graph.nodes:
            for name in dict.fromkeys(node.inputs):
                self._reading[name].append(node)
        direct = Counter(name for node in graph.nodes for name in node.inputs)
        direct.update(name for node in graph.nodes for name in node.captured)
        direct.update(graph.outputs)
        self._count = Counter(direct)
        for node in graph.nodes:
            if is_operator(node, "DequantizeLinear"):
                # One that nobody reads is a reader all the same.
                self._count[node.inputs[0]] += max(direct[node.outputs[0]], 1) - 1

    def giver(self, name: str) -> Node | None:
        """The node whose result `name` is."""
        return self._giver.get(name)

    def only_reader(self, node: Node) -> Node | None:
        """The one node that reads the first result of another, None where there are more or less."""
        result = next(iter(node.outputs), "")
        readers = self._reading.get(result, [])
        return readers[-1] if readers and self._count[result] == 1 else None

    def all_readers(self, node: Node) -> Sequence[Node]:
        """The nodes that read the first result of another."""
        return self._reading.get(next(iter(node.outputs), ""), [])

    def constant(self, name: str) -> Array | None:
        """A constant of the graph."""
        return self._constants.get(name)


def is_operator(node: Node, kind: str) -> bool:
    """Whether a node is of `kind`, QuantizeLinear or DequantizeLinear, with what that needs."""
    return node.kind in (kind, _DOMAIN + kind) and len(node.inputs) >= 2 and len(node.outputs) == 1
