"""What was measured of the variants of kernels, as a table: a row for each kernel."""

from __future__ import annotations

from qdialect.cli import table
from qdialect.runtime.tuning_report import TunedKernel, TuningReport

_HEADER = ("kernel", "model's choice", "us", "tried", "chosen", "won")
_NUMBERS = (2, 5)


def text(report: TuningReport) -> str:
    """The table, and a line for all kernels; a line alone where there are no variants."""
    if not report.kernels:
        return f"{report.target}: 0 kernels have variants that could be measured"
    lines = [table.render(_HEADER, [_row(one) for one in report.kernels], right=_NUMBERS)]
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
    return one.kernel, own.variant, f"{own.seconds * 1e6:.2f}", tried, chosen, f"{100 * one.gain:.1f} %"
