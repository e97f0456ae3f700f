"""``qdialect-bench``: how fast compiled networks are, compared with other engines and the machine's limits."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from qdialect.bench import pictures, report
from qdialect.bench.engines import ENGINES, OURS, SLOW, missing_package
from qdialect.bench.levels import HOST
from qdialect.bench.results import Measurement, Results, Row
from qdialect.bench.run import Run, Selection, Settings, select
from qdialect.bench.sources import all_sources
from qdialect.cli import terminal
from qdialect.cli.arguments import CommandParser
from qdialect.cli.terminal import render_table
from qdialect.ir.context import read_text
from qdialect.support.diagnostics import InputError, QDialectError

# A measurement as a table for a terminal.

_HEADER = ("engine", "variant", "ms", "min", "of peak", "different", "by at most")


def measurement_table(measurement: Measurement) -> str:
    """All variants, the fastest first, and under them what failed."""
    threads = f"{measurement.threads} thread{'s' * (measurement.threads != 1)}"
    title = f"{measurement.name}: {measurement.text}, {threads}"
    if measurement.macs:
        title += f", {measurement.macs / 1e6:.6g} million multiply-accumulates"
    if measurement.peak:
        title += f", peak {measurement.peak * 1e-9:.1f} GMAC/s"
    ordered = sorted((row for row in measurement.rows if not row.error), key=lambda row: row.seconds)
    rows = [_cells(measurement, row) for row in ordered]
    errors = [f"{row.engine} {row.variant}: {row.error}" for row in measurement.rows if row.error]
    return "\n".join([title, terminal.render_table(_HEADER, rows, right=(2, 3, 4, 5, 6)), *errors, ""])


def _cells(measurement: Measurement, row: Row) -> tuple[str, ...]:
    share = measurement.share(row)
    return (
        row.engine,
        row.variant,
        f"{row.seconds * 1e3:.4g}",
        f"{row.minimum * 1e3:.4g}",
        "" if share is None else f"{100 * share:.1f} %",
        f"{row.different:.2g}" if row.different else "none",
        f"{row.largest:g}" if row.different else "",
    )


# The command line of ``qdialect-bench``.

PROGRAM = "qdialect-bench"

_QUICK_ROUNDS, _QUICK_SECONDS = 2, 0.1
_EXAMPLES = """\
An engine that is not installed, and a network that is not here, is named and skipped.

examples:
  qdialect-bench                                       every engine on every workload, one thread and two
  qdialect-bench --quick                               the same, with fewer and shorter rounds
  qdialect-bench --only W1,W6 --engines qdialect,onnxruntime --threads 1
  qdialect-bench --target avx2                         as on a CPU with AVX2 alone
  qdialect-bench --output-dir benchmarks               write results.json, RESULTS.md and pictures there
  qdialect-bench --list                                what can be measured, and what is absent
"""


class Arguments(argparse.Namespace):
    """The command line."""

    only: tuple[str, ...]
    engines: tuple[str, ...]
    threads: tuple[int, ...]
    target: str
    rounds: int
    seconds: float
    quick: bool
    output_dir: str | None
    list: bool
    report_only: bool


def parse(arguments: Sequence[str] | None) -> Arguments:
    """The options; ends the program where they are wrong."""
    options = _parser().parse_args(arguments, namespace=Arguments())
    if options.quick:
        options.rounds, options.seconds = _QUICK_ROUNDS, _QUICK_SECONDS
    return options


def _parser() -> CommandParser:
    parser = CommandParser(
        PROGRAM,
        "Measure compiled networks against other engines and against the bare dot-product instruction.",
        _EXAMPLES,
    )
    parser.add_argument("--only", type=_names, default=(), metavar="NAMES", help="workloads, separated by commas")
    parser.add_argument("--engines", type=_names, default=(), metavar="NAMES", help="engines, separated by commas")
    parser.add_argument(
        "--threads",
        type=_counts,
        default=(),
        metavar="COUNTS",
        help="numbers of threads (default: 1, and 2 for networks)",
    )
    parser.add_argument(
        "--target",
        default=HOST,
        metavar="NAME",
        help="keep this compiler, OpenVINO and PyTorch to the instructions of a CPU (default: host, all engines)",
    )
    parser.add_argument("--rounds", type=_count, default=3, help="measurements of each engine (default: 3)")
    parser.add_argument(
        "--seconds", type=_seconds, default=0.6, help="timed seconds of each variant, over all rounds (default: 0.6)"
    )
    parser.switch(
        "--quick",
        help=f"{_QUICK_ROUNDS} rounds, {_QUICK_SECONDS} seconds, one thread, no slow engines: figures are rough",
    )
    parser.add_argument("--output-dir", metavar="DIR", help="write results.json, RESULTS.md and pictures there")
    parser.switch("--report-only", help="write the report of the results.json that is in --output-dir again")
    parser.switch("--list", help="show workloads and engines, and measure nothing")
    return parser


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _counts(text: str) -> tuple[int, ...]:
    return tuple(_count(name) for name in _names(text))


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, but got '{text}'")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, but got '{text}'")
    return seconds


_RESULTS = "results.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = parse(arguments)
    return terminal.run(PROGRAM, lambda: _run(options))


def _run(options: Arguments) -> int:
    folder = None if options.output_dir is None else Path(options.output_dir)
    if options.report_only:
        if folder is None:
            raise InputError("--report-only needs --output-dir, the folder with the results")
        _write_report(folder, Results.from_json(read_text(folder / _RESULTS)))
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
        terminal.make_folder(folder)
    settings = Settings(options.threads, options.rounds, options.seconds, options.quick, options.target)
    results = Run(selection, settings, terminal.progress, _show).results()
    if folder is not None:
        terminal.write_file(str(folder / _RESULTS), results.to_json().encode())
        _write_report(folder, results)
    return 0


def _write_report(folder: Path, results: Results) -> None:
    files = {"RESULTS.md": report.markdown(results)}
    if find_spec("matplotlib"):
        files |= {report.SHARES_PICTURE: pictures.shares(results), report.ROOFLINE_PICTURE: pictures.roofline(results)}
    else:
        terminal.say(f"{PROGRAM}: warning: matplotlib is not installed, which draws {report.ROOFLINE_PICTURE}")
    for name, content in files.items():
        terminal.write_file(str(folder / name), content.encode())
    print(f"wrote {', '.join(files)} to {folder}")


def _print_list(selection: Selection) -> None:
    print(render_table(("workload", "kind"), [(source.name, source.kind) for source in selection.sources]))
    print(f"\nengines: {', '.join(selection.engines)}")
    for name, reason in selection.absent.items():
        print(f"left out: {name}: {reason}")


def _show(measurement: Measurement) -> None:
    print(measurement_table(measurement), flush=True)


if __name__ == "__main__":
    sys.exit(main())
