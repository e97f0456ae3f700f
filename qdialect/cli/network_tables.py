"""The regions of a partitioned network and the measured variants of kernels, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qdialect.cli import terminal
from qdialect.runtime.base import Region, TunedKernel, TuningReport
from qdialect.support.diagnostics import printable


def region_text(regions: Sequence[Region], seconds: Sequence[float] = ()) -> str:
    """A row for each region, with its time where it was measured, and why nodes are not compiled."""
    header = ("region", "run by", "nodes", "MMAC", "reads", "gives", *(("time ms",) if seconds else ()))
    rows = [
        (f"#{number}", region.runner, str(len(region.nodes)), f"{region.products * 1e-6:.4g}", *_edges(region))
        for number, region in enumerate(regions)
    ]
    if seconds:
        rows = [(*row, f"{one * 1e3:.4g}") for row, one in zip(rows, seconds, strict=True)]
    shown = terminal.render_table(header, rows, right=(2, 3, 6))
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


# The measurements of the variants of kernels as a table: a row for each kernel.

_HEADER = ("kernel", "work", "model's choice", "us", "tried", "chosen", "won")
_NUMBERS = (3, 6)


def tuning_text(report: TuningReport) -> str:
    """The table, and a line for all kernels; a line alone where there are no variants."""
    if not report.kernels:
        return f"{report.target}: 0 kernels have variants that could be measured"
    lines = [terminal.render_table(_HEADER, [_row(one) for one in report.kernels], right=_NUMBERS)]
    kept = sum(one.was_kept for one in report.kernels)
    known = f" ({kept} of them before)" if kept else ""
    count, changed = len(report.kernels), len(report.changed)
    lines.append(
        f"{report.target}: {count} kernel{'s' * (count != 1)} measured{known}, {changed} changed, which saves "
        f"{100 * report.gain:.1f} % of the time of all"
    )
    return "\n".join(lines)


def _row(one: TunedKernel) -> tuple[str, ...]:
    own, *others = one.trials
    tried = ", ".join(f"{trial.variant} {trial.seconds * 1e6:.2f}" for trial in others)
    chosen = one.chosen if one.gain else "the same"
    return one.name, one.kernel, own.variant, f"{own.seconds * 1e6:.2f}", tried, chosen, f"{100 * one.gain:.1f} %"
