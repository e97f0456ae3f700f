"""Measures workloads on engines: alternately, round after round, each sample between two runs of the bare loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from qdialect.bench.cases import Case, EngineError
from qdialect.bench.clock import Clock, common_state
from qdialect.bench.levels import HOST
from qdialect.bench.process import WorkerProcess
from qdialect.bench.results import Measurement, Rounds, Row
from qdialect.bench.throughput import loop_title
from qdialect.bench.worker import LIMITS
from qdialect.support.diagnostics import InputError
from qdialect.targets import resolve

Progress = Callable[[str], None]

# After the first round a variant that is slower than this times its engine's best is not measured again.
_HOPELESS = 1.25


@dataclass(frozen=True)
class Plan:
    """The workloads and engines to measure, and for how long."""

    engines: Sequence[str]
    threads: int
    rounds: int
    seconds: float
    """Of timed calls for each variant, all rounds together."""
    target: str = HOST
    """Whose instructions all engines are kept to."""


def cores_for(threads: int) -> list[int]:
    """The last cores that this process may use; raises `InputError` where there are fewer."""
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        raise InputError(f"threads must be at most {len(cores)}, the cores that may be used, but got {threads}")
    return cores[-threads:]


class Campaign:
    """The processes of some engines on some cores; one that dies is restarted for the next workload."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan, self.threads = plan, plan.threads
        self._progress = progress
        self._cores = cores_for(plan.threads)
        self._workers: dict[str, WorkerProcess] = {}
        self._limits: list[WorkerProcess] = []
        self._clock = Clock(self._peak)

    def __enter__(self) -> Campaign:
        if loop_title(resolve(self._plan.target)):
            # One for each core, because the cores' rates together are the peak.
            self._limits = [WorkerProcess(LIMITS, 1, [core], self._plan.target) for core in self._cores]
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (*self._limits, *self._workers.values()):
            worker.close()

    def version(self, engine: str) -> str:
        """Of an engine; raises `EngineError` where it does not start."""
        return self._worker(engine).ask("version")["version"]

    def bandwidths(self) -> dict[str, float]:
        """Bytes a second that the cores read, all at the same time, by level of memory."""
        self._progress("measuring memory")
        for worker in self._limits:
            worker.send("bandwidth")
        rates = [worker.receive() for worker in self._limits]
        suffix = f", {self.threads} cores together" if self.threads > 1 else ""
        return {level + suffix: sum(rate[level] for rate in rates) for level in rates[0]} if rates else {}

    def measure(self, case: Case) -> Measurement:
        """One workload, on every engine that can run it."""
        self._progress(f"{case.name}: loading")
        run, before = _Run(list(self._load(case))), self._clock.repeated
        for number in range(self._plan.rounds):
            self._progress(f"{case.name}: round {number + 1} of {self._plan.rounds}, threads: {self.threads}")
            self._round(run, run.running())
            if number == 0:
                run.drop_hopeless()
        self._clock.state = state = run.state()
        # The clock may have settled in another state since.
        self._round(run, [entry for entry in run.entries if entry.rounds and not entry.within(state)])
        self._drop()
        rows = tuple(entry.row(state) for entry in run.entries) + tuple(run.dead)
        fields = case.name, case.kind, case.text, case.macs, case.bytes_moved
        return Measurement(*fields, self.threads, state, rows, self._clock.repeated - before)

    def _load(self, case: Case) -> Iterator[Rounds]:
        for name in self._plan.engines:
            try:
                found = self._worker(name).ask("load", case=case.to_json())["variants"]
            except EngineError as error:
                self._close_worker(name)
                found = {"": {"error": str(error)}}
            for variant, agreement in found.items():
                yield Rounds(name, variant, agreement)

    def _round(self, run: _Run, entries: Sequence[Rounds]) -> None:
        seconds = self._plan.seconds / self._plan.rounds
        for entry in entries:
            if entry not in run.entries:
                # Its engine died in this round.
                continue
            try:
                worker = self._worker(entry.engine)
                request = partial(worker.ask, "measure", variant=entry.variant, seconds=seconds)
                sample = self._clock.sample(request)
            except EngineError as error:
                self._close_worker(entry.engine)
                run.drop_engine(entry.engine, str(error))
            else:
                entry.rounds.append({**sample.found, "rate": sample.rate})

    def _drop(self) -> None:
        for name, worker in list(self._workers.items()):
            try:
                worker.ask("drop")
            except EngineError:
                # It has its figures, and is started again when it is needed.
                self._close_worker(name)

    def _peak(self) -> float:
        """The rate of the bare loop on all cores at once; 0 where there is none."""
        for worker in self._limits:
            worker.send("peak")
        return sum(worker.receive()["rate"] for worker in self._limits)

    def _worker(self, name: str) -> WorkerProcess:
        if name not in self._workers:
            self._workers[name] = WorkerProcess(name, self.threads, self._cores, self._plan.target)
        return self._workers[name]

    def _close_worker(self, name: str) -> None:
        self._workers.pop(name).close()


@dataclass
class _Run:
    """A workload that is being measured."""

    entries: list[Rounds]
    dead: list[Row] = field(default_factory=list[Row])
    hopeless: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def state(self) -> float:
        """The state of the clock in which most was measured."""
        return common_state([one["rate"] for entry in self.entries for one in entry.rounds])

    def running(self) -> list[Rounds]:
        """The entries that the next round measures."""
        return [e for e in self.entries if "error" not in e.agreement and (e.engine, e.variant) not in self.hopeless]

    def drop_engine(self, engine: str, error: str) -> None:
        """An engine that died has no figures for this workload."""
        if any(entry.engine == engine for entry in self.entries):
            self.dead.append(Row(engine, "", error=error))
        self.entries = [entry for entry in self.entries if entry.engine != engine]

    def drop_hopeless(self) -> None:
        """An engine goes on with its best exact variant, its best of all, and what is close to them."""
        for entry in self.running():
            rivals = [e for e in self.running() if e.engine == entry.engine and _is_rival(e, entry)]
            best = min(e.rounds[0]["median"] for e in rivals)
            if entry.rounds[0]["median"] > _HOPELESS * best:
                self.hopeless.add((entry.engine, entry.variant))


def _is_rival(entry: Rounds, other: Rounds) -> bool:
    """Whether being slower than `entry` makes `other` superfluous: an exact one yields to exact ones alone."""
    return entry.agreement["is_exact"] or not other.agreement["is_exact"]
