"""Makes and measures model after model; what has a result is not done again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.zoo import results
from tools.zoo.child import Ended, Limits, run
from tools.zoo.flows.files import Files
from tools.zoo.flows.registry import FLOWS
from tools.zoo.results import Result
from tools.zoo.table import Entry

Run = Callable[[str, list[str], Limits], Ended]

_MAKE, _MEASURE = "tools.zoo.make_model", "tools.zoo.measure_model"


@dataclass(frozen=True)
class Campaign:
    """How models are made and measured; `run` starts a child."""

    folder: Path
    limits: Limits
    is_small: bool
    is_timed: bool
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

    def _made(self, entry: Entry, files: Files) -> Result | None:
        """A result where there is no model, after all."""
        if files.model(entry.flow, FLOWS[entry.flow].suffix).exists():
            return None
        size = ["small"] if self.is_small else []
        ended = self.run(_MAKE, [str(self.folder), entry.network, entry.flow, *size], self.limits)
        return self._failed(entry, "not made", ended) if ended.failure else None

    def _measured(self, entry: Entry, path: Path) -> Result:
        timed = ["timed"] if self.is_timed else []
        ended = self.run(_MEASURE, [str(self.folder), entry.network, entry.flow, *timed], self.limits)
        return self._failed(entry, "crashed", ended) if ended.failure else results.read(path)

    def _failed(self, entry: Entry, status: results.Status, ended: Ended) -> Result:
        (self.folder / entry.network).mkdir(parents=True, exist_ok=True)
        return Result(entry.network, entry.flow, status, (ended.failure,))
