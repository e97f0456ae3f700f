"""Compares operators with their frameworks and keeps the outcome, a row each, in docs/evidence."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tools.evidence import campaign_counts
from tools.evidence.campaigns import CAMPAIGNS, keep, outcome_of_seed
from tools.evidence.case import Key
from tools.evidence.outcomes import Outcome, Rank, is_worse
from tools.evidence.sources import SOURCES, outcome_of_row
from tools.evidence.tables import read, write
from tools.evidence.workers import outcomes

_SECONDS = 120.0
# Models at which a campaign found a fault.
_KEPT = Path("build/campaigns")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(arguments)
    if options.campaign:
        told = _campaign(options)
    else:
        told = [fault for name in options.sources or SOURCES for fault in _measure(name, options)]
    print("\n".join(told))
    return 1 if told else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.evidence",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python -m tools.evidence onnx --operator Clip       measure the rows of an operator again\n"
        "  python -m tools.evidence --check                    fail for a row that became worse\n"
        "  python -m tools.evidence --campaign graphs -n 2000  drawn networks, two thousand of them\n",
    )
    parser.add_argument("sources", nargs="*", choices=[*SOURCES, []], help="which sources; all without any")
    parser.add_argument("--operator", action="append", default=[], help="measure this operator's rows alone")
    parser.add_argument("--every", type=int, default=1, help="measure one row of so many")
    parser.add_argument("--check", action="store_true", help="write nothing; fail for a row that is worse than before")
    parser.add_argument(
        "--campaign", choices=CAMPAIGNS, help="draw cases from seeds instead; docs/testing.md counts them"
    )
    parser.add_argument("-n", "--number", type=int, default=200, help="of the seeds of a campaign")
    parser.add_argument("--first", type=int, help="the first seed; by default that after the last campaign")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes")
    return parser


def _campaign(options: argparse.Namespace) -> list[str]:
    """Run a campaign and count it; its faults, a line each, whose models are kept."""
    name = options.campaign
    known = campaign_counts.read().get(name, campaign_counts.Counts())
    first = known.seeds if options.first is None else options.first
    tasks = [(name, seed) for seed in range(first, first + options.number)]
    found: Counter[Rank] = Counter()
    reasons: Counter[str] = Counter()
    told: list[str] = []
    for (_, seed), outcome in outcomes(outcome_of_seed, tasks, jobs=options.jobs, seconds=_SECONDS):
        found[outcome.rank] += 1
        reasons[outcome.detail] += outcome.rank == Rank.REFUSED
        if outcome.is_fault:
            path = keep(name, seed, _KEPT)
            told.append(f"{name} {seed}: {outcome}; {path or 'make it again with --first'}")
    print(f"{name}: {_counts_text(found)}", flush=True)
    print("\n".join(f"  refused: {reason}" for reason, count in reasons.most_common(10) if count and reason))
    if not options.check and options.first is None:
        campaign_counts.add(name, options.number, found)
    return told


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
    print(f"{name}: {_counts_text(Counter(outcome.rank for outcome in found.values()))}", flush=True)
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


def _counts_text(counts: Mapping[Rank, int]) -> str:
    return ", ".join(f"{counts[rank]} {rank.name.lower()}" for rank in Rank if counts.get(rank))


if __name__ == "__main__":
    raise SystemExit(main())
