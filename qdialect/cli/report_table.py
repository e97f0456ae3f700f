"""A report of a network as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from qdialect.cli import region_table, table
from qdialect.lowering.pipeline import Lowered
from qdialect.report import NetworkReport, NodeReport

_LONGEST = 72
_NAMES = {"i8": "8-bit", "i16": "16-bit", "i32": "32-bit", "i64": "64-bit", "f32": "float"}


def text(report: NetworkReport) -> str:
    """A row for each node, and what it comes to: kernels against nodes, and which tensors lie between them."""
    if report.regions:
        return _of_regions(report)
    if report.lowered is None:
        rows = [(_short(entry.node.title), entry.blocked or "supported") for entry in report.nodes]
        blocked = sum(bool(entry.blocked) for entry in report.nodes)
        return f"{table.render(('node', 'blocked by'), rows)}\n\n{blocked} of {len(rows)} nodes are not supported"
    rows = [(_short(entry.node.title), _ops(entry), _calls(entry, report.lowered)) for entry in report.nodes]
    return "\n".join([table.render(("node", "became", "computed by"), rows), "", *_summary(report, report.lowered)])


def _of_regions(report: NetworkReport) -> str:
    """A row for each node and the regions that run it, then the regions."""
    homes: dict[str, list[str]] = {}
    for number, region in enumerate(report.regions):
        for title in region.nodes:
            homes.setdefault(title, []).append(f"#{number} {region.runner}")
    rows = [
        (_short(entry.node.title), ", ".join(homes.get(entry.node.title, ("no region: known while compiling",))))
        for entry in report.nodes
    ]
    return f"{table.render(('node', 'in region'), rows)}\n\n{region_table.text(report.regions)}"


def _short(title: str) -> str:
    """Names of nodes that converters have fused are as long as what they were fused of."""
    return title if len(title) <= _LONGEST else f"{title[: _LONGEST - 5]}...')"


def _ops(entry: NodeReport) -> str:
    if entry.ops:
        return ", ".join(name.removeprefix("qnn.") for name in entry.ops)
    return f"part of {_short(entry.within)}" if entry.within else "nothing"


def _calls(entry: NodeReport, lowered: Lowered) -> str:
    if entry.calls:
        return ", ".join(f"#{number} {lowered.calls[number].label}" for number in entry.calls)
    return "no kernel: known while compiling, or a view of what is there"


def _summary(report: NetworkReport, lowered: Lowered) -> Iterator[str]:
    labels = Counter(call.label for call in lowered.calls)
    calls = ", ".join(f"{count} {label}" for label, count in labels.most_common())
    yield f"{len(report.nodes)} nodes in {len(lowered.calls)} kernel calls ({calls})"
    yield f"{lowered.kernels} distinct kernels, {lowered.arena_bytes} bytes of working memory"
    tensors = ", ".join(f"{count} {_NAMES[element]}" for element, count in report.tensors().most_common())
    yield f"tensors stored between them: {tensors or 'none'}"
