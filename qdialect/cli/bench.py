"""``qdialect-bench``: how fast compiled networks are, beside other engines and the machine's limits."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from qdialect.bench import machine
from qdialect.bench.campaign import Campaign, Plan, cores_for
from qdialect.bench.cases import Source
from qdialect.bench.engines import ENGINES, missing_package
from qdialect.bench.results import Measurement, Results, Row
from qdialect.bench.sources import all_sources
from qdialect.cli import table, terminal
from qdialect.cli.bench_arguments import PROGRAM, Arguments, parse
from qdialect.diagnostics import InputError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = parse(arguments)
    return terminal.run(PROGRAM, lambda: _run(options))


def _run(options: Arguments) -> int:
    everything, absent = all_sources()
    sources = _select(options.only, everything)
    missing = {name: missing_package(name) for name in _known("engine", options.engines, ENGINES)}
    absent |= {name: f"package '{package}' is not installed" for name, package in missing.items() if package}
    engines = [name for name in missing if name not in absent]
    if options.list:
        _print_list(sources, engines)
    for name, reason in absent.items():
        terminal.say(f"{PROGRAM}: '{name}' is skipped: {reason}")
    if options.list:
        return 0
    threads = options.threads or tuple(range(1, min(2, len(os.sched_getaffinity(0))) + 1))
    # Before anything is measured.
    for count in threads:
        cores_for(count)
    results = _measure(options, sources, engines, threads, absent)
    if options.output_dir is not None:
        _write(Path(options.output_dir), results)
    return 0


def _measure(
    options: Arguments,
    sources: Sequence[Source],
    engines: Sequence[str],
    threads: Sequence[int],
    absent: dict[str, str],
) -> Results:
    plans = [Plan(engines, count, options.rounds, options.seconds) for count in threads]
    measurements: list[Measurement] = []
    with ExitStack() as stack:
        campaigns = [stack.enter_context(Campaign(plan, _progress)) for plan in plans]
        versions = campaigns[0].versions()
        for source in sources:
            found = list(_measure_one(source, campaigns))
            print("\n".join(map(_table, found)), flush=True)
            measurements += found
    settings = {"rounds": str(options.rounds), "seconds": str(options.seconds), "threads": ", ".join(map(str, threads))}
    return Results(machine.describe(), versions, absent, settings, tuple(measurements))


def _measure_one(source: Source, campaigns: Sequence[Campaign]) -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory(prefix="qdialect-bench-") as folder:
        _progress(f"{source.name}: preparing")
        case = source.prepare(Path(folder))
        for campaign in campaigns:
            yield campaign.measure(case)


def _select(names: Sequence[str], sources: Sequence[Source]) -> list[Source]:
    known = {source.name: source for source in sources}
    return [known[name] for name in _known("workload", names, known) if names or known[name].is_default]


def _known(kind: str, names: Sequence[str], known: Collection[str]) -> list[str]:
    """The `names`, or all."""
    for name in names:
        if name not in known:
            raise InputError(f"{kind} must be one of {', '.join(known)}, but got '{name}'")
    return list(names or known)


def _print_list(sources: Sequence[Source], engines: Sequence[str]) -> None:
    print(table.render(("workload", "kind"), [(source.name, source.kind) for source in sources]))
    print(f"\nengines: {', '.join(engines)}")


def _table(measurement: Measurement) -> str:
    threads = f"{measurement.threads} thread{'s' * (measurement.threads != 1)}"
    title = f"{measurement.name}: {measurement.text}; {measurement.macs / 1e6:.6g} MMAC, {threads}"
    if measurement.peak:
        title += f", peak {measurement.peak * 1e-9:.1f} GMAC/s"
    ordered = sorted(measurement.rows, key=lambda row: row.seconds)
    rows = [_cells(measurement, row) for row in ordered if not row.error]
    header = ("engine", "variant", "ms", "least", "of peak", "different", "by at most")
    errors = [f"{row.engine} {row.variant}: {row.error}" for row in ordered if row.error]
    return "\n".join([title, table.render(header, rows, right=(2, 3, 4, 5, 6)), *errors, ""])


def _cells(measurement: Measurement, row: Row) -> tuple[str, ...]:
    share = measurement.share(row)
    return (
        row.engine,
        row.variant,
        f"{row.seconds * 1e3:.4g}",
        f"{row.least * 1e3:.4g}",
        "" if share is None else f"{100 * share:.1f} %",
        f"{row.different:.2g}" if row.different else "none",
        f"{row.largest:g}" if row.different else "",
    )


def _write(folder: Path, results: Results) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    terminal.write_file(str(folder / "results.json"), results.to_json().encode())


def _progress(what: str) -> None:
    if sys.stderr and sys.stderr.isatty():
        terminal.say(f"{what} ...")


if __name__ == "__main__":
    sys.exit(main())
