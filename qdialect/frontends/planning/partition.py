"""Cuts a graph into regions that are compiled and regions that the model's framework runs.

Every node has a level: that of the highest node it reads from, one more where that one runs on the other side.  So
levels of compiled nodes are even, those of the framework odd, and all nodes of one level are a region.  A path through
the graph never descends, so none leaves a region and enters it again: regions are convex, and run one after the other.
Each pass over the graph looks at every node and every edge once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

from qdialect.frontends.building.checks import Array
from qdialect.frontends.planning.emitter import ValueRefusedError
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import NOT_COMPILED

CROSSING = 1 << 18
"""The least work of a region, in units of `Step.work`: entering and leaving the framework takes some 10 us."""
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


def with_copies(nodes: Iterable[PartitionNode]) -> list[PartitionNode]:
    """The nodes; those of constants alone, which frameworks fold, are copied too."""
    found: list[PartitionNode] = []
    constant: set[str] = set()
    for node in nodes:
        is_constant = not node.reason and constant.issuperset(node.reads)
        constant.update(node.gives if is_constant else ())
        found.append(replace(node, is_copied=True) if is_constant else node)
    return found


@dataclass(frozen=True)
class Part:
    """Nodes of one region in the order of execution, copies among them, and the names that it reads and gives."""

    nodes: tuple[int, ...]
    is_compiled: bool
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Partition:
    """Regions in the order of execution; `reasons` gives, by the index of a node, why the framework runs it."""

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
    """The least work of a compiled region of a graph."""
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
    # Nodes with too little work may join a region further down.
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


# A model that is divided between this compiler and its own framework, whatever the format.

Runner = Callable[[Sequence[Array]], Sequence[Array]]
"""Computes the outputs of a region of the framework from its inputs."""
Compiled = TypeVar("Compiled")
# A region that is refused so often is left to the framework as a whole.
_MAX_ROUNDS = 16


class PartRefusedError(Exception):
    """Nodes of a part cannot be compiled: why, by their indices."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__()
        self.reasons = reasons


@dataclass(frozen=True)
class OpenInterface:
    """An input or output of a divided model; an extent of -1 is known when it runs and not before."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """By NumPy's name."""
    scale: float | None = None
    zero_point: int | None = None


class Division(ABC):
    """The parts of a model that can be compiled, and how parts are compiled or given to the framework.

    `name` is what messages call the model, `framework` is that of the framework.
    """

    name: str
    framework: str
    nodes: Sequence[PartitionNode]
    """Those that compute something, in the order of execution."""
    inputs: Sequence[OpenInterface]
    outputs: Sequence[OpenInterface]
    constants: Mapping[str, Array]
    """Outputs that are known."""
    states: Mapping[str, tuple[Array, str]] = MappingProxyType({})
    """What is kept from call to call, by the names that nodes read: for the first one, and what the next one reads."""
    hides_state: bool = False
    """Whether a part that the framework runs keeps something from call to call."""

    @abstractmethod
    def module(self, part: Part) -> ir.Module:
        """The module of a part; raises `PartRefusedError`, and `ImportModelError` for the part as a whole."""

    @abstractmethod
    def runner(self, part: Part, threads: int) -> Runner:
        """The framework with a part loaded; raises `ImportModelError` where the framework does not take it."""


def divide(division: Division, compile_: Callable[[ir.Module], Compiled]) -> tuple[Partition, list[Compiled | None]]:
    """The partition of a model all of whose compiled parts are compiled, and what `compile_` made of each.

    What a part cannot have where it begins or ends shows when it is imported, so the model is divided again and again
    until every part is compiled; compiled parts are kept.
    """
    outputs = [*(tensor.name for tensor in division.outputs), *(result for _, result in division.states.values())]
    reasons: dict[int, str] = {}
    done: dict[Part, Compiled] = {}
    rounds = 0
    while True:
        nodes = [replace(node, reason=reasons.get(i, node.reason)) for i, node in enumerate(division.nodes)]
        found = partition(nodes, outputs)
        refused: dict[int, str] = {}
        for part in found.parts:
            if part.is_compiled and part not in done:
                refused.update(_compile(division, part, compile_, done, is_whole=rounds >= _MAX_ROUNDS))
        if not refused:
            return found, [done.get(part) for part in found.parts]
        reasons.update(refused)
        rounds += 1


def _compile(
    division: Division,
    part: Part,
    compile_: Callable[[ir.Module], Compiled],
    done: dict[Part, Compiled],
    *,
    is_whole: bool,
) -> Mapping[int, str]:
    """Put what a part is compiled to into `done`; else why its nodes cannot be."""
    try:
        done[part] = compile_(division.module(part))
    except PartRefusedError as error:
        if not is_whole:
            return error.reasons
        return dict.fromkeys(part.nodes, next(iter(error.reasons.values())))
    except NOT_COMPILED as error:
        value = error.value if isinstance(error, ValueRefusedError) and not is_whole else ""
        given = {name: index for index in part.nodes for name in division.nodes[index].gives}
        return dict.fromkeys([given[value]] if value in given else part.nodes, error.message)
    return {}


def refused_nodes(
    part: Part, nodes: Sequence[PartitionNode], reasons: Mapping[str, str], interface_reasons: Mapping[str, str]
) -> dict[int, str]:
    """Why nodes of a part cannot be compiled, by a planner's reasons for titles, and for inputs and outputs by name."""
    found = {index: reasons[nodes[index].title] for index in part.nodes if nodes[index].title in reasons}
    for index in part.nodes:
        near = [name for name in (*nodes[index].reads, *nodes[index].gives) if name in interface_reasons]
        at_edge = [name for name in near if name in nodes[index].gives or name in part.inputs]
        if at_edge and index not in found:
            found[index] = f"'{at_edge[0]}' cannot leave its region: {interface_reasons[at_edge[0]]}"
    return found
