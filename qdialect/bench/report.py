"""The results of a run as Markdown; all of it comes from the results, so that it can be written again."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from qdialect.bench.clock import agree, common_state
from qdialect.bench.engines import ENGINES, OURS
from qdialect.bench.goals import duration, judge
from qdialect.bench.results import LEVEL, Measurement, Results, Row

SHARES_PICTURE = "shares.svg"
ROOFLINE_PICTURE = "roofline.svg"

_TITLES = {
    "layer": "Layers",
    "chain": "Chains of layers",
    "network": "Whole networks, random weights",
    "transformer": "Transformers, random weights",
    "model": "Real networks",
    "function": "Float functions",
    "call": "The smallest call",
}
_INTRODUCTION = """\
# Benchmark results

Written by `make bench`; `docs/performance.md` explains how it is measured and how to read it.

A cell has the time of a call of an engine's fastest variant, and its share of the peak: of the rate of a loop of the
target's fastest products of bytes, which the machine's table names, on as many cores, measured before and after each
sample. All samples of a workload are of one state of the clock, in which the loop has one rate. A star marks a variant
whose outputs are not the right ones, beyond ties of the last rounding; then the fastest exact one follows in brackets,
if any. The last column is the time of the fastest other engine over ours.
"""


def markdown(results: Results) -> str:
    """The page."""
    parts = [
        _INTRODUCTION,
        *_machine(results),
        *_goals(results),
        f"![Share of the peak]({SHARES_PICTURE})\n",
        f"![Roofline]({ROOFLINE_PICTURE})\n",
        *_summaries(results),
        *_core_shares(results),
        *_footprints(results),
        *_details(results),
        *_absent(results),
    ]
    return "\n".join(parts)


def _machine(results: Results) -> Iterator[str]:
    yield "## Machine and versions\n"
    rates = {f"reads from {level}": f"{rate * 1e-9:.1f} GB/s" for level, rate in results.limits.items()}
    for threads in sorted({m.threads for m in results.measurements if m.peak}):
        peaks = [m.peak for m in results.measurements if m.threads == threads]
        rates[f"peak, {_threads(threads)}"] = f"{states(peaks)}, bare {results.loop}"
    rates["samples repeated in another state of the clock"] = str(sum(m.repeated for m in results.measurements))
    facts = {**results.machine, **rates, **results.versions, **results.settings}
    yield _table(("what", "value"), list(facts.items()))


def states(peaks: Sequence[float]) -> str:
    """The states of the clock in which the bare loop had these rates, the most frequent first."""
    state = common_state(peaks)
    rest = [peak for peak in peaks if not agree(peak, state)]
    text = f"{state * 1e-9:.1f} GMAC/s"
    return f"{text} (in {len(peaks) - len(rest)} of {len(peaks)}), {states(rest)}" if any(rest) else text


def _goals(results: Results) -> Iterator[str]:
    verdicts = judge(results)
    # They are those of the machine's own instructions.
    if not verdicts or LEVEL in results.settings:
        return
    met = sum(verdict.is_met for verdict in verdicts)
    yield f"## Goals: {met} of {len(verdicts)} met\n"
    rows = [(v.what, v.goal, v.figure, v.best_peer, "met" if v.is_met else "**missed**") for v in verdicts]
    yield _table(("what", "goal", "figure", "best of the others", ""), rows)


def _summaries(results: Results) -> Iterator[str]:
    for threads in sorted({m.threads for m in results.measurements}):
        for kind, title in _TITLES.items():
            chosen = [m for m in results.measurements if (m.kind, m.threads) == (kind, threads)]
            if chosen:
                yield f"## {title}, {_threads(threads)}\n"
                yield _summary(chosen)


def _summary(measurements: Sequence[Measurement]) -> str:
    engines = [engine for engine in ENGINES if any(m.best(engine, exact=False) for m in measurements)]
    rows: list[Sequence[str]] = []
    for measurement in measurements:
        ours = measurement.best(OURS, exact=False)
        peer = measurement.fastest_peer(OURS, exact=False)
        ratio = f"{peer.seconds / ours.seconds:.2f}" if ours and peer else ""
        rows.append((f"**{measurement.name}** {measurement.text}", *(_cell(measurement, e) for e in engines), ratio))
    return _table(("workload", *engines, "ahead"), rows)


def _cell(measurement: Measurement, engine: str) -> str:
    fastest, exact = measurement.best(engine, exact=False), measurement.best(engine)
    if fastest is None:
        return ""
    if fastest.is_exact:
        return _time_and_share(measurement, fastest)
    rest = f" ({_time_and_share(measurement, exact)})" if exact else ""
    return f"{_time_and_share(measurement, fastest)} \\*{rest}"


def _time_and_share(measurement: Measurement, row: Row) -> str:
    share = measurement.share(row)
    return duration(row.seconds) + ("" if share is None else f", {100 * share:.1f} %")


def _core_shares(results: Results) -> Iterator[str]:
    if not results.core_shares:
        return
    yield "## Share of the core\n"
    mean = statistics.fmean(one.of_bound for one in results.core_shares)
    yield (
        "Each network on one core, kernel by kernel: its products as a share of the peak; what its instructions "
        "need at least on the busiest port, or its bytes from the level of memory that holds them, whichever is more, "
        "as a share of the time; and how far the cost model's cycles are from those "
        "measured, of half of the calls at most and weighted by time. "
        f"The mean of the shares of the bound is {100 * mean:.0f} %.\n"
    )
    rows = [
        (
            one.name,
            duration(one.seconds),
            *(f"{100 * share:.1f} %" for share in (one.of_peak, one.of_bound, one.median_error, one.weighted_error)),
        )
        for one in results.core_shares
    ]
    yield _table(("network", "kernels", "of peak", "of bound", "median error", "weighted error"), rows)


def _footprints(results: Results) -> Iterator[str]:
    if not results.footprints:
        return
    yield "## Compilation and memory\n"
    yield "Each network compiled once, in a fresh process.\n"
    rows = [
        (
            one.name,
            f"{one.seconds:.2f} s",
            _size(one.process),
            f"{one.kernels} in {one.calls} calls",
            _size(one.arena),
            _over(one.arena, one.live),
            _size(one.constants),
            _over(one.constants, one.weights),
            _over(one.packed, one.eight_bit),
        )
        for one in results.footprints
    ]
    header = (
        *("network", "compiled in", "process", "kernels", "working memory", "over what lives", "constants"),
        *("over the model's", "packed weights over the model's"),
    )
    yield _table(header, rows)


def _over(size: int, minimum: int) -> str:
    return f"{size / minimum:.2f}" if minimum else ""


def _details(results: Results) -> Iterator[str]:
    yield "## Every variant\n"
    header = ("engine", "variant", "median", "minimum", "9 of 10 below", "of peak", "differing elements", "by at most")
    for measurement in results.measurements:
        gmacs = f", {measurement.macs / 1e6:.6g} million multiply-accumulates" if measurement.macs else ""
        yield f"### {measurement.name}, {_threads(measurement.threads)}\n"
        repeated = f", {measurement.repeated} samples repeated" if measurement.repeated else ""
        clock = f", bare loop at {measurement.peak * 1e-9:.1f} GMAC/s{repeated}" if measurement.peak else ""
        yield f"{measurement.text}{gmacs}{clock}\n"
        rows = sorted((row for row in measurement.rows if not row.error), key=lambda row: row.seconds)
        yield _table(header, [_detail(measurement, row) for row in rows])
        failures = [f"- {row.engine} {row.variant}: {row.error}" for row in measurement.rows if row.error]
        if failures:
            yield "\n".join(failures) + "\n"


def _detail(measurement: Measurement, row: Row) -> Sequence[str]:
    share = measurement.share(row)
    return (
        row.engine,
        row.variant,
        duration(row.seconds),
        duration(row.minimum),
        duration(row.upper),
        "" if share is None else f"{100 * share:.1f} %",
        f"{100 * row.different:.2g} %" if row.different else "none",
        f"{row.largest:g}" if row.different else "",
    )


def _absent(results: Results) -> Iterator[str]:
    if results.absent:
        yield "## Left out\n"
        yield "\n".join(f"- {name}: {reason}" for name, reason in results.absent.items()) + "\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count != 1)}"


def _size(count: int) -> str:
    return f"{count / 1024:.4g} KiB" if count < 1 << 20 else f"{count / (1 << 20):.4g} MiB"
