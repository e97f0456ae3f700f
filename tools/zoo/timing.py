"""The times of one model: each engine is loaded once, and all of them are called alternately."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import qdialect
from qdialect import targets
from qdialect.bench.cases import Session
from qdialect.bench.clock import Clock, agree, common_state
from qdialect.bench.throughput import bare_loop
from qdialect.bench.worker import measure
from tools.zoo import calls
from tools.zoo.flows.samples import Sample
from tools.zoo.measuring import as_list, failure, fitting
from tools.zoo.results import OURS, Result

# Of the calls of one engine.
_SECONDS = 0.3
_ROUNDS = 5


def timed(start: Result, path: Path, sample: Sample, left_out: Sequence[str] = ()) -> Result:
    """`start` with the times of the model at `path`; an engine that fails has its reason instead.

    The network comes from the compile cache where it has been kept.  Raises `QDialectError` where it cannot be
    compiled any more.
    """
    executable = qdialect.compile(path, fallback="framework")
    inputs = fitting(sample, executable.inputs)
    outputs = as_list(executable(*inputs))
    sessions = {OURS: Session(executable.bind(inputs, outputs), lambda: outputs)}
    untimed: dict[str, str] = {}
    for name in (one for one in calls.TIMED[path.suffix] if one not in left_out):
        try:
            session = calls.load(name, str(path), inputs, outputs)
            session.call()
        # Whatever an engine raises is told in the report.
        except Exception as error:
            untimed[name] = failure(name, error)
        else:
            sessions[name] = session
    found = {name: session.call for name, session in sessions.items()}
    times, peak = alternated(found, _SECONDS, Clock(bare_loop(targets.host())))
    return replace(start, times=times, peak=peak, untimed=untimed)


def alternated(
    calls: Mapping[str, Callable[[], object]], seconds: float, clock: Clock
) -> tuple[dict[str, float], float]:
    """Seconds of each call, the median of some rounds of one state of the clock, and the bare loop's rate in it.

    Each round calls one after the other; `seconds` are what all rounds take for one of them.
    """
    share = seconds / _ROUNDS
    rounds = [
        clock.sample(lambda: {name: measure(call, share).median for name, call in calls.items()})
        for _ in range(_ROUNDS)
    ]
    state = common_state([one.rate for one in rounds])
    within = [one.found for one in rounds if agree(one.rate, state)]
    return {name: median([found[name] for found in within]) for name in calls}, state
