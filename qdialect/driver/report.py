"""Reports for each node of a network its ops and kernel, or the reason why it cannot be compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.driver.fallback import division_of, region_of
from qdialect.frontends.building.checks import GraphNode
from qdialect.frontends.model_files import format_of
from qdialect.frontends.planning.partition import divide
from qdialect.ir._mlir import ir
from qdialect.ir.context import names_of
from qdialect.lowering.pipeline.phases import Lowered, Phase, lower
from qdialect.lowering.qnn_to_linalg.to_linalg import main_function
from qdialect.runtime.base import Region
from qdialect.support.diagnostics import ImportModelError
from qdialect.support.options import Fallback, ImportOptions, check_fallback
from qdialect.targets import Target


@dataclass(frozen=True)
class NodeReport:
    """A node, and what became of it.

    `ops` are the ops it was imported as; a node that has none of its own takes part in those of the nodes which read
    it, and `within` names the first of them.  `calls` are numbers of the kernel calls that compute it, empty where it
    was computed while compiling.  `blocked` is why it cannot be imported, empty where it can.
    """

    node: GraphNode
    ops: tuple[str, ...] = ()
    within: str = ""
    calls: tuple[int, ...] = ()
    blocked: str = ""


@dataclass(frozen=True)
class NetworkReport:
    """Every node of a network and, unless one is blocked, the network at the phase `linalg`.

    `regions` are those of a network of which its framework runs a part.
    """

    nodes: tuple[NodeReport, ...]
    lowered: Lowered | None
    error: ImportModelError | None
    regions: tuple[Region, ...] = ()

    def tensors(self) -> Counter[str]:
        """How many stored intermediate values there are of each element type."""
        return Counter(element for element, _ in self.lowered.buffers) if self.lowered else Counter()


def report(
    path: str | Path, target: Target, options: ImportOptions | None = None, fallback: Fallback = "none"
) -> NetworkReport:
    """The ops and kernels of the nodes of a model file.

    Unsupported nodes do not raise here: they are reported, and `error` is what the import raised.  With `fallback` they
    are in regions of the framework instead.  Raises
    `ImportModelError` for a file that cannot be imported for another reason, and `CompileError` for ops without a
    lowering.
    """
    check_fallback(fallback)
    path, options = Path(path), options or ImportOptions()
    kind = format_of(path)
    nodes = kind.nodes(path, options)
    try:
        module = kind.read(path, options)
    except ImportModelError as error:
        refused = tuple(NodeReport(node, blocked=_reason(node, error)) for node in nodes)
        if not any(entry.blocked for entry in refused):
            raise
        if fallback == "framework":
            division = division_of(path, options, error, "framework")
            found, _ = divide(division, lambda module: lower(module, target, Phase.LINALG))
            return NetworkReport(refused, None, None, tuple(region_of(division, found, part) for part in found.parts))
        return NetworkReport(refused, None, error)
    imported = ops_by_name(module)
    lowered = lower(module, target, Phase.LINALG)
    calls: dict[str, list[int]] = {}
    for number, call in enumerate(lowered.calls):
        for name in call.names:
            calls.setdefault(name, []).append(number)
    return NetworkReport(tuple(nodes_report(nodes, imported, calls)), lowered, None)


def _reason(node: GraphNode, error: ImportModelError) -> str:
    """The error's message for a node: each of its notes starts with the title of one."""
    start = f"{node.title}: "
    said = (note.message for diagnostic in error.diagnostics for note in diagnostic.notes)
    return next((text.removeprefix(start) for text in said if text.startswith(start)), "")


def ops_by_name(module: ir.Module) -> dict[str, list[str]]:
    """Names of the ops that are located at a name, without constants."""
    found: dict[str, list[str]] = {}
    for op in main_function(module).regions[0].blocks[0].operations:
        if op.operation.name not in CONSTANT_OPS:
            for name in names_of(op.operation.location):
                found.setdefault(name, []).append(op.operation.name)
    return found


def nodes_report(
    nodes: Sequence[GraphNode], imported: Mapping[str, Sequence[str]], calls: Mapping[str, Sequence[int]]
) -> list[NodeReport]:
    """The outcome for each node, in order, given the ops and the numbers of the kernel calls by names of the model.

    Readers come after what they read, so they are asked from the last node on.
    """
    readers: dict[str, list[GraphNode]] = {}
    hosts: dict[str, NodeReport] = {}
    for node in reversed(nodes):
        hosts[node.title] = _report(node, imported, calls, [hosts[r.title] for r in _readers(node, readers)])
        for name in dict.fromkeys(node.inputs):
            readers.setdefault(name, []).append(node)
    return [hosts[node.title] for node in nodes]


def _readers(node: GraphNode, readers: Mapping[str, Sequence[GraphNode]]) -> list[GraphNode]:
    return [reader for name in node.outputs for reader in reversed(readers.get(name, ()))]


def _report(
    node: GraphNode,
    imported: Mapping[str, Sequence[str]],
    calls: Mapping[str, Sequence[int]],
    readers: Sequence[NodeReport],
) -> NodeReport:
    ops = tuple(op for name in node.outputs for op in imported.get(name, ()))
    numbers = sorted({number for name in node.outputs for number in calls.get(name, ())})
    if ops or numbers:
        return NodeReport(node, ops, calls=tuple(numbers))
    hosts = [reader for reader in readers if reader.ops or reader.within]
    if not hosts:
        return NodeReport(node)
    numbers = sorted({number for host in hosts for number in host.calls})
    return NodeReport(node, within=hosts[0].within or hosts[0].node.title, calls=tuple(numbers))
