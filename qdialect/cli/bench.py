"""``qdialect-bench``: how fast compiled networks are, beside other engines and the machine's limits."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from qdialect.bench import pictures, report
from qdialect.bench.engines import ENGINES, OURS, SLOW, missing_package
from qdialect.bench.results import Measurement, Results
from qdialect.bench.run import Run, Selection, Settings, select
from qdialect.bench.sources import all_sources
from qdialect.cli import terminal
from qdialect.cli.bench_arguments import PROGRAM, Arguments, parse
from qdialect.cli.bench_table import measurement_table
from qdialect.cli.table import render as render_table
from qdialect.context import read_text
from qdialect.diagnostics import InputError, QDialectError

_RESULTS = "results.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = parse(arguments)
    return terminal.run(PROGRAM, lambda: _run(options))


def _run(options: Arguments) -> int:
    folder = None if options.output_dir is None else Path(options.output_dir)
    if options.report_only:
        _report_again(folder)
        return 0
    if package := missing_package(OURS):
        raise QDialectError(f"benchmark needs package '{package}', which the extra 'bench' brings")
    quick_engines = [name for name in ENGINES if name not in SLOW and not missing_package(name)]
    engines = options.engines or (quick_engines if options.quick else ())
    selection = select(options.only, engines, *all_sources(), options.target)
    if options.list:
        _print_list(selection)
        return 0
    for name, reason in selection.absent.items():
        terminal.say(f"{PROGRAM}: '{name}' is left out: {reason}")
    if folder is not None:
        # Before minutes are spent.
        _make(folder)
    settings = Settings(options.threads, options.rounds, options.seconds, options.quick, options.target)
    results = Run(selection, settings, _progress, _show).results()
    if folder is not None:
        terminal.write_file(str(folder / _RESULTS), results.to_json().encode())
        _write_report(folder, results)
    return 0


def _report_again(folder: Path | None) -> None:
    if folder is None:
        raise InputError("--report-only needs --output-dir, the folder with the results")
    _write_report(folder, Results.from_json(read_text(folder / _RESULTS)))


def _write_report(folder: Path, results: Results) -> None:
    files = {
        "RESULTS.md": report.markdown(results),
        report.SHARES_PICTURE: pictures.shares(results),
        report.ROOFLINE_PICTURE: pictures.roofline(results),
    }
    for name, content in files.items():
        terminal.write_file(str(folder / name), content.encode())
    print(f"wrote {', '.join(files)} to {folder}")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise QDialectError(f"cannot make folder '{folder}': {error.strerror}") from error


def _print_list(selection: Selection) -> None:
    print(render_table(("workload", "kind"), [(source.name, source.kind) for source in selection.sources]))
    print(f"\nengines: {', '.join(selection.engines)}")
    for name, reason in selection.absent.items():
        print(f"left out: {name}: {reason}")


def _show(measurement: Measurement) -> None:
    print(measurement_table(measurement), flush=True)


def _progress(what: str) -> None:
    if sys.stderr and sys.stderr.isatty():
        terminal.say(f"{what} ...")


if __name__ == "__main__":
    sys.exit(main())
