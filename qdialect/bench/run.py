"""A whole run: workloads on engines and thread counts, the machine, and what else a report tells."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from qdialect.bench.campaign import Campaign, Plan, Progress, cores_for
from qdialect.bench.cases import Case, EngineError, Source
from qdialect.bench.core_share import CoreShare, core_share
from qdialect.bench.engines import ENGINES, OURS, missing_package
from qdialect.bench.footprint import Footprint, footprint
from qdialect.bench.goals import COMPILED
from qdialect.bench.levels import HOST, reason_to_leave_out
from qdialect.bench.results import LEVEL, Measurement, Results
from qdialect.bench.throughput import loop_title
from qdialect.support.diagnostics import InputError, QDialectError
from qdialect.targets import resolve

T = TypeVar("T")


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
                self._measure_apart("compiling in a fresh process", "footprint", footprint, self._footprints, case)
                self._measure_apart("measuring every kernel", "share of the core", core_share, self._core_shares, case)

    def _measure_apart(self, doing: str, what: str, measure: Callable[[Case], T], found: list[T], case: Case) -> None:
        self.progress(f"{case.name}: {doing}")
        try:
            found.append(measure(case))
        except EngineError as error:
            self.selection.absent[f"{what} of {case.name}"] = str(error)
