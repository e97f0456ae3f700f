"""Cuts a graph into regions that are compiled and regions that the model's framework runs.

Every node has a level: that of the highest node it reads from, one more where that one runs on the other side.  So
levels of compiled nodes are even, those of the framework odd, and all nodes of one level are a region.  A path through
the graph never descends, so none leaves a region and enters it again: regions are convex, and run one after the other.
Each pass over the graph looks at every node and every edge once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

CROSSING = 1 << 18
"""What a region must be worth, in units of `Step.work`: entering and leaving the framework takes some 10 us."""
_SMALLEST_SHARE = 16
"""A region with this part of all work is kept however little it is: the whole network is small then."""
TOO_SMALL = "too little work for a region of its own"
FOLLOWS = "ends the quantized group of a node that the framework runs"


@dataclass(frozen=True)
class PartitionNode:
    """A node as the partition sees it; names of constants are left out of `reads`.

    `reason` is why it cannot be compiled, empty where it can.  `is_copied`: it costs next to nothing, so that every
    region computes it for itself (a DequantizeLinear).  `ends_group`: it quantizes what the node before it computes,
    and a framework may fuse the two.  `is_narrow`: what it gives is quantized, so that it may well cross a boundary.
    `is_kept`: it is compiled however little work it is.
    """

    title: str
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    products: int = 0
    elements: int = 0
    reason: str = ""
    is_copied: bool = False
    ends_group: bool = False
    is_narrow: bool = False
    is_kept: bool = False

    @property
    def work(self) -> int:
        """Products, and elements at the cost of some products."""
        return self.products + 8 * self.elements


@dataclass(frozen=True)
class Part:
    """Nodes of one region in the order of execution, copies among them, and the names that it reads and gives."""

    nodes: tuple[int, ...]
    is_compiled: bool
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Partition:
    """Regions in the order of execution; `reasons` says, by the index of a node, why the framework runs it."""

    parts: tuple[Part, ...]
    reasons: Mapping[int, str]


def partition(nodes: Sequence[PartitionNode], outputs: Sequence[str], crossing: int = CROSSING) -> Partition:
    """The regions of a graph whose nodes are in the order of execution and whose results are `outputs`.

    Compiled regions that are worth less than `crossing` are left to the framework, with their neighbours.
    """
    graph = _Graph(nodes, outputs)
    least = least_work(nodes, crossing)
    reasons = {index: node.reason for index, node in enumerate(nodes) if node.reason}
    while True:
        _follow(graph, reasons)
        levels = _levels(graph, reasons, least)
        small = _small(graph, levels, least)
        if not small:
            return Partition(tuple(_parts(graph, levels)), reasons)
        reasons.update(dict.fromkeys(small, TOO_SMALL))


def least_work(nodes: Sequence[PartitionNode], crossing: int = CROSSING) -> int:
    """What a compiled region of a graph must be worth."""
    return min(crossing, sum(node.work for node in nodes) // _SMALLEST_SHARE)


class _Graph:
    def __init__(self, nodes: Sequence[PartitionNode], outputs: Sequence[str]) -> None:
        self.nodes = nodes
        self.outputs = tuple(dict.fromkeys(outputs))
        self.producer = {name: index for index, node in enumerate(nodes) for name in node.gives}
        wanted = {self.producer[name] for name in self.outputs if name in self.producer}
        # A copy has no level of its own, unless its result is one of the graph's.
        self.levelled = [index for index, node in enumerate(nodes) if not node.is_copied or index in wanted]

    def is_copied(self, index: int) -> bool:
        return self.nodes[index].is_copied

    @cached_property
    def sources(self) -> list[tuple[int, ...]]:
        """The nodes that each node reads from, those behind copies in place of the copies."""
        found: list[tuple[int, ...]] = []
        for node in self.nodes:
            direct = (self.producer[name] for name in node.reads if name in self.producer)
            behind = (source for index in direct for source in (found[index] if self.is_copied(index) else (index,)))
            found.append(tuple(dict.fromkeys(behind)))
        return found


def _follow(graph: _Graph, reasons: dict[int, str]) -> None:
    """A node that ends the group of a node of the framework goes with it."""
    for index, node in enumerate(graph.nodes):
        follows = node.ends_group and node.reads and not node.is_copied
        before = graph.producer.get(node.reads[0]) if follows else None
        if before is not None and before in reasons:
            reasons.setdefault(index, FOLLOWS)


def _levels(graph: _Graph, reasons: Mapping[int, str], least: int) -> dict[int, int]:
    levels: dict[int, int] = {}
    for index in graph.levelled:
        side = int(index in reasons)
        above = (levels[source] + ((levels[source] ^ side) & 1) for source in graph.sources[index])
        levels[index] = max(above, default=-side)
    _sink(graph, levels, {index for index in graph.levelled if not graph.nodes[index].is_narrow})
    # What is too little where it stands may join a region further down.
    _sink(graph, levels, set(_small(graph, levels, least)))
    return levels


def _sink(graph: _Graph, levels: dict[int, int], movable: set[int]) -> None:
    """Move compiled nodes down to the first that reads them, so that what crosses a boundary is quantized."""
    free = movable - {graph.producer[name] for name in graph.outputs if name in graph.producer}
    lowest: dict[int, int] = {}
    for index in reversed(graph.levelled):
        level = levels[index]
        limit = lowest.get(index)
        if limit is not None and index in free and level % 2 == 0:
            level = levels[index] = max(level, limit - limit % 2)
        for source in graph.sources[index]:
            lowest[source] = min(lowest.get(source, level), level)


def _small(graph: _Graph, levels: Mapping[int, int], least: int) -> list[int]:
    """The nodes of compiled regions that are worth less than `least`."""
    work: dict[int, int] = defaultdict(int)
    for index, level in levels.items():
        work[level] += least if graph.nodes[index].is_kept else graph.nodes[index].work
    return [index for index, level in levels.items() if level % 2 == 0 and work[level] < least]


def _parts(graph: _Graph, levels: Mapping[int, int]) -> list[Part]:
    members: dict[int, set[int]] = defaultdict(set)
    for index, level in levels.items():
        members[level].add(index)
    for nodes in members.values():
        _add_copies(graph, nodes)
    ordered = [(level % 2 == 0, sorted(members[level])) for level in sorted(members)]
    reads = [_inputs(graph, nodes) for _, nodes in ordered]
    wanted = {name for names in reads for name in names} | set(graph.outputs)
    given: set[str] = set()
    parts: list[Part] = []
    for (is_compiled, nodes), inputs in zip(ordered, reads, strict=True):
        # A copy gives the same in every region, so the first is asked for it.
        own = (name for index in nodes for name in graph.nodes[index].gives)
        outputs = tuple(name for name in own if name in wanted and name not in given)
        given.update(outputs)
        parts.append(Part(tuple(nodes), is_compiled, inputs, outputs))
    return parts


def _add_copies(graph: _Graph, nodes: set[int]) -> None:
    waiting = list(nodes)
    while waiting:
        for name in graph.nodes[waiting.pop()].reads:
            index = graph.producer.get(name)
            if index is not None and index not in nodes and graph.is_copied(index):
                nodes.add(index)
                waiting.append(index)


def _inputs(graph: _Graph, nodes: Sequence[int]) -> tuple[str, ...]:
    given = {name for index in nodes for name in graph.nodes[index].gives}
    read = (name for index in nodes for name in graph.nodes[index].reads)
    return tuple(dict.fromkeys(name for name in read if name not in given))
