"""The process of one engine, which measures: ``python -m qdialect.bench.worker ENGINE THREADS CORE...``."""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from typing import Any, TextIO

import numpy as np

from qdialect.bench.cases import Case, Engine, Session
from qdialect.bench.engines import load_engine, version_of
from qdialect.bench.levels import target_name
from qdialect.bench.throughput import LEVELS, dot_product_rate, read_rate
from qdialect.support.interface import Array
from qdialect.targets import resolve

# How far an engine's outputs are from the right ones.


# A tie in a convolution's result becomes a difference of up to three where the activation after it has a finer scale.
_TIES = 1e-4
_LARGEST = 3


@dataclass(frozen=True)
class Agreement:
    """Of integers the differences are differences of quantized values, of floats those of the numbers."""

    elements: int
    different: int
    largest: float
    """The largest difference; infinite where shapes or number of outputs differ."""

    @property
    def share(self) -> float:
        """Share of elements that differ."""
        return self.different / max(self.elements, 1)

    @property
    def is_exact(self) -> bool:
        """Whether the outputs are the right ones, a few rounded ties aside."""
        return self.different == 0 or (self.share < _TIES and self.largest <= _LARGEST)


def agreement(wanted: Sequence[Array], found: Sequence[Array], tolerance: float = 0.0) -> Agreement:
    """Compare lists of outputs; a difference within `tolerance` of the right number, or of 1, does not count."""
    elements = sum(array.size for array in wanted)
    shapes = [array.shape for array in wanted]
    if [array.shape for array in found] != shapes:
        return Agreement(elements, elements, float("inf"))
    different, largest = 0, 0.0
    for right, array in zip(wanted, found, strict=True):
        with np.errstate(invalid="ignore"):
            gaps = np.abs(right.astype(np.float64) - array.astype(np.float64))
            allowed = tolerance * np.maximum(np.abs(right), 1) if tolerance else 0
        # Equal infinities have no difference.
        gaps[(right == array) | (gaps <= allowed)] = 0
        different += int(np.count_nonzero(gaps))
        largest = max(largest, float(np.max(gaps, initial=0)))
    return Agreement(elements, different, largest)


# Times of one call, again and again.

# A sample has enough calls for the cost of reading the clock to be negligible.
_SAMPLE_SECONDS = 20e-6
_LARGEST_BATCH = 1000
_MIN_SAMPLES = 3
_WARM_UP_SHARE = 0.2


@dataclass(frozen=True)
class Times:
    """The result of a round of timed calls, in seconds a call."""

    median: float
    minimum: float
    upper: float
    """Of ten samples, nine are not above."""
    calls: int


def measure(call: Callable[[], object], seconds: float) -> Times:
    """Call for about `seconds` seconds, after a warm-up; a call that takes longer is made once."""
    first = _sample(call, 1)
    if first > seconds:
        return summary([first], 1)
    batch = _warm_up(call, seconds * _WARM_UP_SHARE)
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while len(samples) < _MIN_SAMPLES or time.perf_counter() < end:
        samples.append(_sample(call, batch))
    return summary(samples, batch)


def summary(samples: Sequence[float], batch: int) -> Times:
    """Of samples, each the mean over `batch` calls."""
    ordered = sorted(samples)
    upper = ordered[min(int(0.9 * len(ordered)), len(ordered) - 1)]
    return Times(statistics.median(ordered), ordered[0], upper, len(ordered) * batch)


def _warm_up(call: Callable[[], object], seconds: float) -> int:
    """Calls in a sample."""
    end = time.perf_counter() + seconds
    minimum = _sample(call, 1)
    while time.perf_counter() < end:
        minimum = min(minimum, _sample(call, 1))
    return max(1, min(_LARGEST_BATCH, round(_SAMPLE_SECONDS / max(minimum, 1e-9))))


def _sample(call: Callable[[], object], batch: int) -> float:
    start = time.perf_counter()
    for _ in repeat(None, batch):
        call()
    return (time.perf_counter() - start) / batch


# The process of one engine: ``python -m qdialect.bench.worker ENGINE THREADS CORE...``.
#
# Reads one JSON object a line on stdin and answers each with one on stdout; prints of an engine go to stderr. Requests:
# ``{"do": "load", "case": ...}`` tells what became of each variant,
# ``{"do": "measure", "variant": ..., "seconds": ...}`` the times of a call, ``{"do": "peak"}`` the bare instruction's
# rate, ``{"do": "bandwidth"}`` the rates of reading memory; ``{"do": "drop"}`` forgets the case.

LIMITS = "limits"
"""Stands for an engine where only the machine is measured."""

Answer = dict[str, Any]


class Worker:
    """Answers requests for one engine."""

    def __init__(self, engine: Engine | None, threads: int, version: str) -> None:
        self._engine, self._version = engine, version
        self._threads = threads
        self._sessions: dict[str, Session] = {}

    def answer(self, request: dict[str, Any]) -> Answer:
        """The answer to a request."""
        match request["do"]:
            case "version":
                return {"version": self._version}
            case "load":
                return {"variants": self._load(Case.from_json(request["case"]))}
            case "measure":
                session = self._sessions[request["variant"]]
                return asdict(measure(session.call, request["seconds"]))
            case "peak":
                return {"rate": dot_product_rate(resolve(target_name()))}
            case "bandwidth":
                return {level: read_rate(size) for level, size in LEVELS.items()}
            case "drop":
                self._sessions.clear()
                gc.collect()
                return {}
            case other:
                raise ValueError(f"unknown request '{other}'")

    def _load(self, case: Case) -> dict[str, Answer]:
        if self._engine is None:
            return {}
        found: dict[str, Answer] = {}
        for variant, form in self._engine.variants(case).items():
            try:
                session = self._engine.load(case, variant, self._threads)
                session.call()
                agreed = agreement(case.forms[form].outputs(), session.outputs(), case.tolerance)
            # Whatever a package raises; the reader of the results is told.
            except Exception as error:
                text = " ".join(str(error).split())
                found[variant] = {"error": f"{type(error).__name__}: {text[:200]}"}
            else:
                self._sessions[variant] = session
                found[variant] = {**asdict(agreed), "is_exact": agreed.is_exact}
        return found


def serve(worker: Worker, requests: TextIO, answers: TextIO) -> None:
    """Answer every line of `requests`."""
    for line in requests:
        print(json.dumps(worker.answer(json.loads(line))), file=answers, flush=True)


def main(arguments: Sequence[str]) -> None:
    """Serve one engine on stdin and stdout."""
    name, threads, *cores = arguments
    os.sched_setaffinity(0, {int(core) for core in cores})
    # Answers keep the real stdout for themselves.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    engine, version = (None, "") if name == LIMITS else (load_engine(name), version_of(name))
    gc.disable()
    serve(Worker(engine, int(threads), version), sys.stdin, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
