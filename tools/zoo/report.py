"""The results as Markdown; all of it comes from the results, so that it can be written again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from tools.zoo.agreement import Agreement, Cause, Distance, Ties
from tools.zoo.markdown import ABSENT, escaped, table
from tools.zoo.results import OURS, STATUSES, Result
from tools.zoo.speed import factor, times
from tools.zoo.verdict import TIE, kind, verdict

_INTRODUCTION = """\
# The zoo

Written by `make zoo`; [docs/zoo.md](../docs/zoo.md) explains how the models are made and measured and how to read the
columns.
"""
_ENGINES = (OURS, "onnx_runtime", "open_vino", "litert", "inductor")
_SHOWN_REASONS = 20

_Column = Callable[[Result], str]


def report(results: Sequence[Result], machine: Mapping[str, str], sizes: str) -> str:
    """The page; `sizes` says which form of the networks was made."""
    facts = {**machine, "networks": sizes}
    parts = [
        _INTRODUCTION,
        "## Machine\n",
        table(("what", "value"), list(facts.items())),
        "## Summary\n",
        *_summary(results),
        *times(results),
        *_flows(results),
        *_reasons(results),
    ]
    return "\n".join(parts)


def _summary(results: Sequence[Result]) -> Iterator[str]:
    flows = list(dict.fromkeys(result.flow for result in results))
    counts = Counter((result.flow, result.status) for result in results)
    rows = [(flow, *(str(counts[flow, status]) for status in STATUSES)) for flow in flows]
    total = Counter(result.status for result in results)
    yield table(("flow", *STATUSES), [*rows, ("all", *(str(total[status]) for status in STATUSES))])
    judged = Counter([kind(verdict(result)) for result in results if verdict(result)])
    yield from (f"- {what}: {count}" for what, count in sorted(judged.items()))
    yield ""


def _flows(results: Sequence[Result]) -> Iterator[str]:
    for flow in dict.fromkeys(result.flow for result in results):
        own = [result for result in results if result.flow == flow]
        timed = [engine for engine in _ENGINES if any(engine in result.times for result in own)]
        columns: dict[str, _Column] = {**_COLUMNS, **{f"{engine} ms": _time_of(engine) for engine in timed}}
        if timed:
            columns["factor"] = factor
        yield f"## {flow}\n"
        yield table(tuple(columns), [[column(result) for column in columns.values()] for result in own])


def _reasons(results: Sequence[Result]) -> Iterator[str]:
    told = [result for result in results if _lines(result)]
    if told:
        yield "## Reasons and notes\n"
    for result in told:
        yield f"### {result.network}, {result.flow}: {result.status}\n"
        lines = _lines(result)
        yield from (f"- {escaped(line.strip())}" for line in lines[:_SHOWN_REASONS])
        if len(lines) > _SHOWN_REASONS:
            yield f"- and {len(lines) - _SHOWN_REASONS} more"
        yield ""


def _lines(result: Result) -> list[str]:
    untimed = [f"not timed: {reason}" for reason in result.untimed.values()]
    return [*result.reasons, *result.notes, *untimed, *_differing(result)]


def _differing(result: Result) -> list[str]:
    """The units that differ most, a line for each kind."""
    if result.causes:
        return [f"unit that differs: {cause.name} ({cause.different}): {_cause(cause)}" for cause in result.causes]
    kinds = (("integer units", result.integer_units), ("float units", result.float_units))
    return [f"{kind} that differ: {', '.join(found.names)}" for kind, found in kinds if found and found.names]


def _cause(found: Cause) -> str:
    """Whose arithmetic it is, by the distances to what the truth makes of the same tensors."""
    ours, framework = (f"{distance:.1g} of a step" for distance in (found.ours, found.framework))
    match found.ours > TIE, found.framework > TIE:
        case False, False:
            return f"ties, of which the truth is at most {max(found.ours, found.framework):.1g} of a step away"
        case False, True:
            return f"the framework's arithmetic, up to {framework} from the truth; ours is at most {ours} from it"
        case True, False:
            return f"our arithmetic, up to {ours} from the truth; the framework's is at most {framework} from it"
        case _:
            return f"both are away from the truth: ours up to {ours}, the framework's up to {framework}"


def _share(result: Result) -> str:
    return f"{100 * result.native_share:.3g} %" if result.status in ("native", "fallback") else ABSENT


def _seconds(result: Result) -> str:
    return f"{result.compile_seconds:.1f}" if result.compile_seconds else ABSENT


def _different(result: Result) -> str:
    found = result.difference
    return ABSENT if found is None else f"{found.different} of {found.elements}"


def _largest(result: Result) -> str:
    return ABSENT if result.difference is None else f"{result.difference.maximum:.2g}"


def _agreement(found: Agreement | None) -> str:
    if found is None:
        return ABSENT
    steps = f", by {found.steps} at most" if found.steps > 1 else ""
    return f"{found.different} of {found.elements}{steps}"


def _ties(found: Ties | None) -> str:
    if found is None:
        return ABSENT
    distance = f", {found.distance:.1g} of a step" if found.different else ""
    return f"{found.different} of {found.elements}{distance}"


def _distance(found: Distance | None) -> str:
    return ABSENT if found is None else f"{found.mean:.3g}, {found.maximum:.3g}"


def _time_of(engine: str) -> _Column:
    return lambda result: f"{result.times[engine] * 1e3:.3g}" if engine in result.times else ABSENT


_COLUMNS: Mapping[str, _Column] = {
    "network": lambda result: result.network,
    "status": lambda result: result.status,
    "products compiled": _share,
    "compile s": _seconds,
    "elements different": _different,
    "largest": _largest,
    "integer units": lambda result: _agreement(result.integer_units),
    "float units": lambda result: _agreement(result.float_units),
    "units against the truth: ours": lambda result: _ties(result.our_units),
    "framework": lambda result: _ties(result.framework_units),
    "ours to truth": lambda result: _distance(result.ours),
    "framework to truth": lambda result: _distance(result.framework),
    "unoptimized to truth": lambda result: _distance(result.plain),
    "verdict": lambda result: verdict(result) or ABSENT,
}
