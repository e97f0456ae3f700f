"""Makes and measures model after model; what has a result is not done again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from qdialect.bench.engines.inductor import failure_of, package_of
from qdialect.bench.process import Ended, Limits, run
from tools.zoo import results
from tools.zoo.calls import INDUCTOR, TIMED
from tools.zoo.flows.files import Files
from tools.zoo.flows.registry import FLOWS
from tools.zoo.results import OURS, Result
from tools.zoo.table import Entry

Run = Callable[[str, list[str], Limits], Ended]

_MAKE, _MEASURE, _TIME = (f"tools.zoo.{name}_model" for name in ("make", "measure", "time"))


@dataclass(frozen=True)
class Campaign:
    """How models are made and measured; `run` starts a child."""

    folder: Path
    limits: Limits
    is_small: bool
    run: Run = run

    def result(self, entry: Entry) -> Result:
        """What becomes of a model, read from its file or found out."""
        files = Files(self.folder / entry.network)
        path = files.result(entry.flow)
        if path.exists():
            return results.read(path)
        found = self._made(entry, files) or self._measured(entry, path)
        found.write(path)
        return found

    def timed(self, entry: Entry) -> Result:
        """Its result with new times, which replace those that it has; unchanged where nothing runs.

        An engine that fails costs no other one its time.
        """
        files = Files(self.folder / entry.network)
        path, model = files.result(entry.flow), files.model(entry.flow, FLOWS[entry.flow].suffix)
        before = results.read(path)
        if before.status not in results.RUNS:
            return before
        untimed, package = self._packaged(model), package_of(model)
        failure = self._time(entry)
        for engine in TIMED[model.suffix] if failure else ():
            # It may be what ends the process; the others are timed without.
            if not self._time(entry, engine):
                untimed, failure = {**untimed, engine: f"{engine}: {failure}"}, ""
                break
        package.unlink(missing_ok=True)
        found = replace(before, times={}, untimed={OURS: f"{OURS}: {failure}"}) if failure else results.read(path)
        replace(found, untimed={**found.untimed, **untimed}).write(path)
        return results.read(path)

    def _time(self, entry: Entry, *left_out: str) -> str:
        """How timing failed."""
        return self.run(_TIME, [str(self.folder), entry.network, entry.flow, *left_out], self.limits).failure

    def _packaged(self, model: Path) -> dict[str, str]:
        """Compile what inductor is timed on, in a process and a time of its own; why there is none, if it fails."""
        if INDUCTOR not in TIMED[model.suffix]:
            return {}
        failure = failure_of(
            lambda module, arguments: self.run(module, arguments, self.limits), model, package_of(model)
        )
        return {INDUCTOR: f"{INDUCTOR}: {failure}"} if failure else {}

    def _made(self, entry: Entry, files: Files) -> Result | None:
        """A result where there is no model, after all."""
        if files.model(entry.flow, FLOWS[entry.flow].suffix).exists():
            return None
        size = ["small"] if self.is_small else []
        ended = self.run(_MAKE, [str(self.folder), entry.network, entry.flow, *size], self.limits)
        return self._failed(entry, "not made", ended) if ended.failure else None

    def _measured(self, entry: Entry, path: Path) -> Result:
        ended = self.run(_MEASURE, [str(self.folder), entry.network, entry.flow], self.limits)
        return self._failed(entry, "crashed", ended) if ended.failure else results.read(path)

    def _failed(self, entry: Entry, status: results.Status, ended: Ended) -> Result:
        (self.folder / entry.network).mkdir(parents=True, exist_ok=True)
        return Result(entry.network, entry.flow, status, (ended.failure,))
