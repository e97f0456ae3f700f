"""The regions of a partitioned network as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qdialect.cli import table
from qdialect.diagnostics import printable
from qdialect.runtime.base import Region


def text(regions: Sequence[Region], seconds: Sequence[float] = ()) -> str:
    """A row for each region, with its time where it was measured, and why nodes are not compiled."""
    header = ("region", "run by", "nodes", "MMAC", "reads", "gives", *(("time ms",) if seconds else ()))
    rows = [
        (f"#{number}", region.runner, str(len(region.nodes)), f"{region.products * 1e-6:.4g}", *_edges(region))
        for number, region in enumerate(regions)
    ]
    if seconds:
        rows = [(*row, f"{one * 1e3:.4g}") for row, one in zip(rows, seconds, strict=True)]
    shown = table.render(header, rows, right=(2, 3, 6))
    return "\n".join([shown, *_reasons(regions)])


def _edges(region: Region) -> tuple[str, str]:
    return _listed(region.inputs), _listed(region.outputs)


def _listed(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names)


def _reasons(regions: Sequence[Region]) -> Iterator[str]:
    for number, region in enumerate(regions):
        if not region.is_compiled:
            yield f"\nnot compiled, in region #{number}:"
        for title, reason in region.reasons.items():
            yield f"  {printable(title)}: {printable(reason)}"
