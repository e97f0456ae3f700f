"""The command line of ``qdialect-bench``."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from qdialect.bench.levels import HOST
from qdialect.cli.command_parser import CommandParser

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


def _parser() -> argparse.ArgumentParser:
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
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{_QUICK_ROUNDS} rounds, {_QUICK_SECONDS} seconds, one thread, no slow engines: figures are rough",
    )
    parser.add_argument("--output-dir", metavar="DIR", help="write results.json, RESULTS.md and pictures there")
    parser.add_argument(
        "--report-only", action="store_true", help="write the report of the results.json that is in --output-dir again"
    )
    parser.add_argument("--list", action="store_true", help="show workloads and engines, and measure nothing")
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
