"""What became of one model, as a file of its own: an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from tools.zoo.agreement import Agreement, Cause, Difference, Distance, Ties

OURS = "qdialect"
"""The engine that is this compiler."""

Status = Literal["native", "fallback", "refused", "crashed", "not made"]
STATUSES: tuple[Status, ...] = get_args(Status)
RUNS: tuple[Status, ...] = ("native", "fallback")
"""Of a model that gives results."""


@dataclass(frozen=True)
class Result:
    """A network in a flow; what could not be measured is `None` or absent, with the reason in `notes`."""

    network: str
    flow: str
    status: Status
    reasons: tuple[str, ...] = ()
    """Why nodes are run by the framework or refused, or why there is no model; a line each."""
    native_share: float = 0.0
    """Of the multiply-accumulates, the share that compiled code does."""
    compile_seconds: float = 0.0
    difference: Difference | None = None
    """To the outputs of the framework."""
    ours: Distance | None = None
    framework: Distance | None = None
    plain: Distance | None = None
    """Of the framework without its optimizations."""
    integer_units: Agreement | None = None
    """Of the units that the framework computes with an integer kernel or a table."""
    float_units: Agreement | None = None
    """Of those with float arithmetic inside."""
    our_units: Ties | None = None
    """Of our units with the truth, each computed from tensors of the truth."""
    framework_units: Ties | None = None
    """Of the framework's units with the truth, from the same tensors."""
    causes: tuple[Cause, ...] = ()
    """Of the units of ours that differ from the framework's."""
    flipped: Ties | None = None
    """What brings the truth to our results, where these are further from it; see `units.flipped_ties`."""
    times: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds of a call by engine."""
    peak: float = 0.0
    """Multiply-accumulates per second of the bare loop meanwhile, in one state of the clock; 0 if unknown."""
    untimed: dict[str, str] = field(default_factory=dict[str, str])
    """Why an engine could not be timed."""
    notes: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def _agreement(fields: dict[str, Any]) -> Agreement:
    own: dict[str, Any] = {**fields, "names": tuple(fields["names"])}
    return Agreement(**own)


_KINDS: dict[str, Callable[[Any], Any]] = {
    "difference": lambda fields: Difference(**fields),
    **dict.fromkeys(("ours", "framework", "plain"), lambda fields: Distance(**fields)),
    **dict.fromkeys(("integer_units", "float_units"), _agreement),
    "causes": lambda found: tuple(Cause(**fields) for fields in found),
    **dict.fromkeys(("our_units", "framework_units", "flipped"), lambda fields: Ties(**fields)),
}


def read(path: Path) -> Result:
    """What `Result.write` wrote."""
    fields = json.loads(path.read_text())
    nested: dict[str, Any] = {name: kind(fields[name]) for name, kind in _KINDS.items() if fields.get(name)}
    lists: dict[str, Any] = {name: tuple(fields.get(name, ())) for name in ("reasons", "notes", "causes")}
    return Result(**{**fields, **lists, **nested})
