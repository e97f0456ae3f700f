"""A whole run: workloads on engines and thread counts, the machine, and what else a report tells."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from qdialect.bench.cases import Case, EngineError, Source
from qdialect.bench.clock import Clock, common_state
from qdialect.bench.engines import ENGINES, OURS, missing_package
from qdialect.bench.footprint import CoreShare, Footprint, measured_apart
from qdialect.bench.goals import COMPILED
from qdialect.bench.levels import HOST, reason_to_leave_out
from qdialect.bench.process import WorkerProcess
from qdialect.bench.results import LEVEL, Measurement, Results, Rounds, Row
from qdialect.bench.throughput import loop_title
from qdialect.bench.worker import LIMITS
from qdialect.support.diagnostics import InputError, QDialectError
from qdialect.targets import resolve

# Workloads on engines: alternately, round after round, each sample between two runs of the bare loop.

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


def describe_machine() -> dict[str, str]:
    """CPU, caches, cores, kernel, Python and date."""
    return {
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        **_caches(Path("/sys/devices/system/cpu/cpu0/cache")),
        "memory": _fields(Path("/proc/meminfo")).get("MemTotal", "unknown"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _cpu() -> str:
    fields = _fields(Path("/proc/cpuinfo"))
    parts = [fields.get("model name", platform.machine())]
    parts += [f"{key} {fields[key]}" for key in ("cpu family", "model", "stepping") if key in fields]
    return ", ".join(parts)


def _fields(path: Path) -> dict[str, str]:
    """The first value of each key of lines like ``key : value``."""
    found: dict[str, str] = {}
    try:
        for line in path.read_text().splitlines():
            key, _, value = line.partition(":")
            found.setdefault(key.strip(), value.strip())
    except OSError:
        return {}
    return found


def _caches(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            found[f"L{level} cache"] = size
    return found


# A whole run: workloads on engines and thread counts, and what else a report tells.

# Workloads with enough layers to be divided among threads, and with a footprint worth reporting.
_NETWORKS = ("network", "transformer", "model")


@dataclass
class Selection:
    """The plan: all names are known, and everything left out has a reason."""

    sources: list[Source]
    engines: list[str]
    absent: dict[str, str]


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    threads: Sequence[int]
    """Empty: one, and for whole networks also two where there are two cores."""
    rounds: int
    seconds: float
    is_quick: bool = False
    """Whether one thread is enough, and of footprints only that whose time there is a goal for."""
    target: str = HOST
    """Whose instructions all engines are kept to."""

    def plans(self, engines: Sequence[str]) -> list[Plan]:
        """One for each number of threads; raises `InputError` if there are fewer cores."""
        maximum = 1 if self.is_quick else 2
        counts = self.threads or range(1, min(maximum, len(os.sched_getaffinity(0))) + 1)
        for count in counts:
            cores_for(count)
        return [Plan(engines, count, self.rounds, self.seconds, self.target) for count in counts]

    def wants(self, case: Case, threads: int) -> bool:
        return bool(self.threads) or threads == 1 or case.kind in _NETWORKS

    def texts(self) -> dict[str, str]:
        texts = {"rounds": str(self.rounds), "timed seconds of each variant": f"{self.seconds:g}"}
        return texts if self.target == HOST else {**texts, LEVEL: self.target}


def select(
    only: Sequence[str],
    engines: Sequence[str],
    sources: Sequence[Source],
    absent: Mapping[str, str],
    target: str = HOST,
) -> Selection:
    """The workloads and engines of these names, or all; raises `InputError` for a name that there is not.

    `absent` has what could be a workload and is not here.
    """
    known = {source.name: source for source in sources}
    for name in _known("workload", only, (*known, *absent)):
        if name in only and name in absent:
            raise InputError(f"workload '{name}' is not here: {absent[name]}")
    chosen = [known[name] for name in only] or [source for source in sources if source.is_default]
    missing = {name: missing_package(name) for name in _known("engine", engines, ENGINES)}
    left_out = {name: f"package '{package}' is not installed" for name, package in missing.items() if package}
    unlimited = {name: reason_to_leave_out(name, target) for name in missing if name not in left_out}
    left_out |= {name: reason for name, reason in unlimited.items() if reason}
    if not only:
        left_out |= absent
    return Selection(chosen, [name for name in missing if name not in left_out], left_out)


def _known(kind: str, names: Sequence[str], known: Collection[str]) -> Sequence[str]:
    """The `names`, or all."""
    for name in names:
        if name not in known:
            raise InputError(f"{kind} must be one of {', '.join(known)}, but got '{name}'")
    return names or list(known)


@dataclass
class Run:
    """Measures a selection; `show` is called with each measurement when it is there."""

    selection: Selection
    settings: Settings
    progress: Progress
    show: Callable[[Measurement], None]
    _footprints: list[Footprint] = field(default_factory=list[Footprint])
    _core_shares: list[CoreShare] = field(default_factory=list[CoreShare])

    def results(self) -> Results:
        selection = self.selection
        plans = self.settings.plans(selection.engines)
        with ExitStack() as stack:
            versions = self._versions(plans[0])
            working = [name for name in selection.engines if name in versions]
            campaigns = [stack.enter_context(Campaign(replace(p, engines=working), self.progress)) for p in plans]
            limits = {level: rate for campaign in campaigns for level, rate in campaign.bandwidths().items()}
            measurements = [m for source in selection.sources for m in self._measure(source, campaigns)]
        return Results(
            machine=describe_machine(),
            versions=versions,
            absent=selection.absent,
            settings=self.settings.texts(),
            measurements=tuple(measurements),
            limits=limits,
            footprints=tuple(self._footprints),
            core_shares=tuple(self._core_shares),
            loop=loop_title(resolve(self.settings.target)) or "",
        )

    def _versions(self, plan: Plan) -> dict[str, str]:
        """Of the engines that start; the others join those that are absent."""
        found: dict[str, str] = {}
        for name in plan.engines:
            try:
                with Campaign(replace(plan, engines=[name]), self.progress) as campaign:
                    found[name] = campaign.version(name)
            except EngineError as error:
                self.selection.absent[name] = str(error)
        return found

    def _measure(self, source: Source, campaigns: Sequence[Campaign]) -> Iterator[Measurement]:
        with tempfile.TemporaryDirectory(prefix="qdialect-bench-") as folder:
            self.progress(f"{source.name}: preparing")
            try:
                case = source.prepare(Path(folder))
            except QDialectError as error:
                # One network that cannot be read is no reason to lose the others.
                self.selection.absent[source.name] = str(error)
                return
            for campaign in campaigns:
                if self.settings.wants(case, campaign.threads):
                    measurement = campaign.measure(case)
                    self.show(measurement)
                    yield measurement
            wants_footprint = case.name == COMPILED if self.settings.is_quick else case.kind in _NETWORKS
            if wants_footprint and self.settings.target == HOST and OURS in self.selection.engines:
                self._measure_apart(case)

    def _measure_apart(self, case: Case) -> None:
        self.progress(f"{case.name}: compiling in a fresh process, and measuring every kernel")
        try:
            footprint, core_share = measured_apart(case)
        except EngineError as error:
            self.selection.absent[f"footprint of {case.name}"] = str(error)
            return
        self._footprints.append(footprint)
        self._core_shares.append(core_share)
