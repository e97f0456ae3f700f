"""Measures operators beside their frameworks and keeps the outcome, a row each, in docs/evidence."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tools.evidence.case import Key
from tools.evidence.outcomes import Outcome, Rank, is_worse
from tools.evidence.sources import SOURCES, outcome_of_row
from tools.evidence.tables import read, write
from tools.evidence.workers import outcomes

_SECONDS = 120.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    faults = [fault for name in options.sources or SOURCES for fault in _measure(name, options)]
    print("\n".join(faults))
    return 1 if faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.evidence",
        description=__doc__,
        epilog="example: python -m tools.evidence onnx --operator Clip --operator Pad",
    )
    parser.add_argument("sources", nargs="*", choices=[*SOURCES, []], help="which sources; all without any")
    parser.add_argument("--operator", action="append", default=[], help="measure this operator's rows alone")
    parser.add_argument("--every", type=int, default=1, help="measure one row of so many")
    parser.add_argument("--check", action="store_true", help="write nothing; fail for a row that is worse than before")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes")
    return parser


def _measure(name: str, options: argparse.Namespace) -> Iterable[str]:
    """Measure the rows of a source, keep them, and return what is at fault, a line each."""
    known = read(name)
    keys = [key for key in SOURCES[name]().rows() if not options.operator or key.operator in options.operator]
    found: dict[Key, Outcome] = {}
    for number, (task, outcome) in enumerate(
        outcomes(outcome_of_row, [(name, key) for key in keys[:: options.every]], jobs=options.jobs, seconds=_SECONDS),
        1,
    ):
        found[task[1]] = outcome
        if sys.stderr.isatty():
            print(f"\r{name}: {number} of {len(keys[:: options.every])}", end="", file=sys.stderr)
    print(f"{name}: {_counts(found.values())}", flush=True)
    if not options.check:
        kept = known if options.operator or options.every > 1 else {}
        write(name, {**kept, **found})
    return faults(name, found, known)


def faults(name: str, found: Mapping[Key, Outcome], known: Mapping[Key, Outcome]) -> list[str]:
    """Rows that became worse, and new ones that are wrong; each as a line."""
    told: list[str] = []
    for key, outcome in found.items():
        before = known.get(key)
        if outcome.is_fault or (before is not None and is_worse(outcome, before)):
            told.append(f"{name} {' | '.join(str(key).split(chr(9)))}: {outcome}; before: {before or 'no row'}")
    return told


def _counts(found: Iterable[Outcome]) -> str:
    counts = Counter(outcome.rank for outcome in found)
    return ", ".join(f"{counts[rank]} {rank.name.lower()}" for rank in Rank if counts[rank])


if __name__ == "__main__":
    raise SystemExit(main())
