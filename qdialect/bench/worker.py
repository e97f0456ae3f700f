"""The process of one engine: ``python -m qdialect.bench.worker ENGINE THREADS CORE...``.

Reads one JSON object a line on stdin and answers each with one on stdout; what an engine prints goes to stderr.
Requests: ``{"do": "load", "case": ...}`` tells what became of each variant, ``{"do": "measure", "variant": ...,
"seconds": ...}`` the times of a call, ``{"do": "peak"}`` the bare instruction's rate, ``{"do": "bandwidth"}`` the rates
of reading memory; ``{"do": "drop"}`` forgets the case.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

from qdialect.bench.agreement import agreement
from qdialect.bench.bandwidth import LEVELS, read_rate
from qdialect.bench.cases import Case
from qdialect.bench.engines import load_engine
from qdialect.bench.engines.base import Engine, Session
from qdialect.bench.levels import target_name
from qdialect.bench.timing import measure
from qdialect.runtime.peak import dot_product_rate
from qdialect.target import resolve

LIMITS = "limits"
"""Stands for an engine where only the machine is measured."""

Answer = dict[str, Any]


class Worker:
    """Answers requests for one engine."""

    def __init__(self, engine: Engine | None, threads: int) -> None:
        self._engine = engine
        self._threads = threads
        self._sessions: dict[str, Session] = {}

    def answer(self, request: dict[str, Any]) -> Answer:
        """What there is to say to a request."""
        match request["do"]:
            case "version":
                return {"version": self._engine.version() if self._engine else ""}
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
                found[variant] = {"error": _one_line(error)}
            else:
                self._sessions[variant] = session
                found[variant] = {**asdict(agreed), "is_exact": agreed.is_exact}
        return found


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"


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
    engine = None if name == LIMITS else load_engine(name)
    gc.disable()
    serve(Worker(engine, int(threads)), sys.stdin, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
