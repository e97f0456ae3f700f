"""Who gives the tensors of a graph, and who reads them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from qdialect.frontends.common import Array
from qdialect.frontends.onnx.model import Graph, Node

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
