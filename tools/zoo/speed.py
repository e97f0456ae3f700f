"""Our times beside the other engines', as Markdown: a factor for each model, and a summary for each flow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from qdialect.bench.goals import AHEAD
from qdialect.bench.report import states
from tools.zoo.markdown import ABSENT, escaped, table
from tools.zoo.results import OURS, Result

_HEAD = ("flow", "timed", "median factor", "smallest factor", f"at least {AHEAD:g}", "at least 1")


@dataclass(frozen=True)
class Lead:
    """The fastest of the other engines, beside ours."""

    engine: str
    factor: float
    """Its time over ours."""


def lead(result: Result) -> Lead | None:
    """None where a model was not timed, or not beside another engine."""
    others = {engine: seconds for engine, seconds in result.times.items() if engine != OURS}
    if OURS not in result.times or not others:
        return None
    fastest = min(others, key=lambda engine: others[engine])
    return Lead(fastest, others[fastest] / result.times[OURS])


def factor(result: Result) -> str:
    """The cell of a result."""
    found = lead(result)
    return f"{found.factor:.2f}" if found else ABSENT


def times(results: Sequence[Result]) -> Iterator[str]:
    """The section of the report; nothing where no model was timed beside another engine."""
    leads = [(result, found) for result in results if (found := lead(result))]
    if not leads:
        return
    flows = dict.fromkeys(result.flow for result, _ in leads)
    rows = [_row(flow, [found for result, found in leads if result.flow == flow]) for flow in flows]
    yield "## Times\n"
    yield "The factor is the time of the fastest other engine divided by ours.\n"
    rates = [result.peak for result, _ in leads if result.peak]
    if rates:
        yield f"The bare loop ran at {states(rates)}.\n"
    yield table(_HEAD, [*rows, _row("all", [found for _, found in leads])])
    behind = sorted(((result, found) for result, found in leads if found.factor < AHEAD), key=lambda one: one[1].factor)
    if behind:
        yield f"Models below {AHEAD:g}:\n"
        yield table(("network", "flow", "factor", "fastest engine"), [_behind(*one) for one in behind])


def _row(flow: str, leads: Sequence[Lead]) -> tuple[str, ...]:
    factors = [one.factor for one in leads]
    ahead = [str(sum(one >= limit for one in factors)) for limit in (AHEAD, 1.0)]
    return (flow, str(len(factors)), f"{median(factors):.2f}", f"{min(factors):.2f}", *ahead)


def _behind(result: Result, found: Lead) -> tuple[str, ...]:
    return (result.network, result.flow, f"{found.factor:.2f}", escaped(found.engine))
