"""The results of a benchmark, and their JSON form."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from qdialect.bench.clock import agree
from qdialect.bench.footprint import CoreShare, Footprint
from qdialect.support.diagnostics import InputError

VERSION = 1
"""Of the JSON form."""
LEVEL = "target"
"""The setting that names the CPU whose instructions all engines were kept to; absent where it was this machine's."""


@dataclass(frozen=True)
class Row:
    """One way of one engine to run a workload; `error` explains why there are no figures."""

    engine: str
    variant: str
    seconds: float = 0.0
    """Of a call: the median over rounds of each round's median."""
    minimum: float = 0.0
    upper: float = 0.0
    """Of ten samples, nine are not above."""
    calls: int = 0
    different: float = 0.0
    """Share of elements that are not the right ones."""
    largest: float = 0.0
    """The largest difference."""
    is_exact: bool = True
    """Whether at most a few rounded ties differ."""
    error: str = ""


@dataclass(frozen=True)
class Measurement:
    """A workload on a number of threads."""

    name: str
    kind: str
    text: str
    macs: int
    bytes_moved: int
    threads: int
    peak: float
    """Multiply-accumulates per second of the bare instruction on as many cores, at the same time; 0 if unknown.

    All rows were measured in the state of the clock in which it has this rate.
    """
    rows: tuple[Row, ...]
    repeated: int = 0
    """Samples that were taken again, because the clock was in another state or changed meanwhile."""

    def share(self, row: Row) -> float | None:
        """The rate of `row` as a share of the peak."""
        if not (self.macs and self.peak and row.seconds):
            return None
        return self.macs / row.seconds / self.peak

    def best(self, engine: str, *, exact: bool = True) -> Row | None:
        """The fastest row of an engine, of those that are exact or of all."""
        rows = [row for row in self.rows if row.engine == engine and not row.error and (row.is_exact or not exact)]
        return min(rows, key=lambda row: row.seconds, default=None)

    def fastest_peer(self, ours: str, *, exact: bool = True) -> Row | None:
        """The fastest row of all other engines."""
        rows = [row for row in self.rows if row.engine != ours and not row.error and (row.is_exact or not exact)]
        return min(rows, key=lambda row: row.seconds, default=None)


@dataclass(frozen=True)
class Results:
    """A whole run."""

    machine: Mapping[str, str]
    versions: Mapping[str, str]
    """Of the engines that ran."""
    absent: Mapping[str, str]
    """Engines and workloads that were left out, and why."""
    settings: Mapping[str, str]
    measurements: tuple[Measurement, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict[str, float])
    """The machine's bandwidth: bytes a second that it reads from each level of memory."""
    footprints: tuple[Footprint, ...] = ()
    """Of networks, the time and memory of compiling and running them."""
    core_shares: tuple[CoreShare, ...] = ()
    """Of networks, the share of one core's peak, and the error of its prediction."""
    loop: str = "vpdpbusd"
    """The bare instructions whose rate is the peak."""

    def find(self, name: str, threads: int = 1) -> Measurement | None:
        return next((m for m in self.measurements if (m.name, m.threads) == (name, threads)), None)

    def to_json(self) -> str:
        return json.dumps({"version": VERSION, **asdict(self)}, indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> Results:
        """A run from its text; raises `InputError` where it is not one."""
        try:
            fields: dict[str, Any] = json.loads(text)
            if fields.pop("version") != VERSION:
                raise InputError(f"results must have version {VERSION}")
            measurements = tuple(_measurement(entry) for entry in fields.pop("measurements"))
            footprints = tuple(Footprint(**entry) for entry in fields.pop("footprints"))
            core_shares = tuple(CoreShare(**entry) for entry in fields.pop("core_shares", ()))
            return Results(**fields, measurements=measurements, footprints=footprints, core_shares=core_shares)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"results must be what a benchmark wrote: {error}") from error


def _measurement(fields: dict[str, Any]) -> Measurement:
    rows = tuple(Row(**row) for row in fields.pop("rows"))
    return Measurement(**fields, rows=rows)


@dataclass
class Rounds:
    """The figures of one variant, round by round."""

    engine: str
    variant: str
    agreement: Mapping[str, Any]
    rounds: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])

    def within(self, state: float) -> list[Mapping[str, Any]]:
        """The rounds that were measured in a state of the clock."""
        return [one for one in self.rounds if agree(one["rate"], state)]

    def row(self, state: float) -> Row:
        """All rounds of a state in one."""
        if "error" in self.agreement:
            return Row(self.engine, self.variant, error=self.agreement["error"])
        rounds = self.within(state)
        if not rounds:
            return Row(self.engine, self.variant, error="the clock was in another state than for the other engines")
        return Row(
            self.engine,
            self.variant,
            seconds=statistics.median([r["median"] for r in rounds]),
            minimum=min(r["minimum"] for r in rounds),
            upper=statistics.median([r["upper"] for r in rounds]),
            calls=sum(r["calls"] for r in rounds),
            different=self.agreement["different"] / max(self.agreement["elements"], 1),
            largest=self.agreement["largest"],
            is_exact=self.agreement["is_exact"],
        )
