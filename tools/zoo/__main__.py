"""Makes networks as users make them, compiles each and reports what became of it.

    python -m tools.zoo                                     every network in every flow
    python -m tools.zoo --networks bert,lstm --no-benchmark these networks, without timing
    python -m tools.zoo --flows qdq_u8s8,pt2e_x86 --small   these flows, on small inputs
    python -m tools.zoo --again                             measure models again that have a result
    python -m tools.zoo --times                             time models again that have a result

Run it from the checkout in the environment of the zoo: `make zoo` does.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from qdialect.bench import run
from qdialect.bench.process import Limits
from tools.zoo.campaign import Campaign
from tools.zoo.flows.files import Files
from tools.zoo.flows.registry import FLOWS
from tools.zoo.report import report
from tools.zoo.results import RUNS, Result
from tools.zoo.table import Entry, chosen, entries

_FOLDER = Path("build/zoo")
_SECONDS, _GIGABYTES = 1200.0, 16.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 1 where a chosen model was neither compiled nor run with its framework's help."""
    parser = _parser()
    options = parser.parse_args(arguments)
    is_small: bool = options.small
    folder: Path = options.folder / ("small" if is_small else "full")
    if options.times and not options.benchmark:
        parser.error("argument --times: not allowed with argument --no-benchmark")
    limits = Limits(options.seconds, options.gigabytes)
    found = chosen(options.networks, options.flows)
    if options.report_only or options.times:
        found = [entry for entry in found if result_of(folder, entry).exists()]
    elif options.again:
        forget(folder, found)
    campaign = Campaign(folder, limits, is_small)
    results = [_told(campaign.result(entry)) for entry in found]
    if options.benchmark and not options.report_only:
        results = [_timed(campaign, result, is_new=options.times) for result in results]
    write(options.output_dir, results, is_small)
    return 0 if all(result.status in RUNS for result in results) else 1


def _timed(campaign: Campaign, result: Result, *, is_new: bool) -> Result:
    """The result with times; with `is_new` they are measured again."""
    if result.times and not is_new:
        return result
    found = campaign.timed(Entry(result.network, result.flow))
    times = ", ".join(f"{engine} {seconds * 1e3:.3g} ms" for engine, seconds in found.times.items())
    print(f"{found.network} {found.flow}: {times or 'not timed'}", flush=True)
    return found


def forget(folder: Path, found: Iterable[Entry]) -> None:
    """Delete the results, so that models are measured again."""
    for entry in found:
        result_of(folder, entry).unlink(missing_ok=True)


def result_of(folder: Path, entry: Entry) -> Path:
    """The file of its result."""
    return Files(folder / entry.network).result(entry.flow)


def write(folder: Path, results: Sequence[Result], is_small: bool) -> None:
    """Write ``ZOO.md`` and ``zoo.json``."""
    facts = run.describe_machine()
    sizes = "small inputs" if is_small else "full size"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ZOO.md").write_text(report(results, facts, sizes))
    data = {"machine": facts, "networks": sizes, "results": list(map(asdict, results))}
    (folder / "zoo.json").write_text(json.dumps(data, indent=1) + "\n")


def _told(result: Result) -> Result:
    reason = f": {result.reasons[0]}" if result.reasons else ""
    print(f"{result.network} {result.flow}: {result.status}{reason}", flush=True)
    return result


def _parser() -> argparse.ArgumentParser:
    summary, _, examples = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m tools.zoo",
        description=summary,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    networks = sorted({entry.network for entry in entries()})
    parser.add_argument("--networks", type=_names(networks), default=[], metavar="A,B", help="default: all")
    parser.add_argument("--flows", type=_names(list(FLOWS)), default=[], metavar="A,B", help="default: all")
    parser.add_argument("--small", action="store_true", help="networks on small inputs, for a quick check")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--again", action="store_true", help="measure models again that have a result")
    what.add_argument("--times", action="store_true", help="only time models that have a result, once more")
    what.add_argument("--report-only", action="store_true", help="write the report of the models that have a result")
    parser.add_argument("--no-benchmark", dest="benchmark", action="store_false", help="compare, but time nothing")
    parser.add_argument("--seconds", type=float, default=_SECONDS, metavar="S", help="limit of making or measuring one")
    parser.add_argument("--gigabytes", type=float, default=_GIGABYTES, metavar="G", help="limit of its address space")
    parser.add_argument("--folder", type=Path, default=_FOLDER, metavar="DIR", help="of the models and results")
    parser.add_argument("--output-dir", type=Path, default=Path("benchmarks"), metavar="DIR", help="of the report")
    return parser


def _names(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Reads names with commas between them, each one of `known`."""

    def read(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"name must be one of {', '.join(known)}, but got '{unknown[0]}'")
        return names

    return read


if __name__ == "__main__":
    sys.exit(main())
