"""What was tried of each kernel of a network, and what it won."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Trial:
    """A variant of a kernel, and the seconds that all calls of the kernel took with it: the median of several runs."""

    variant: str
    seconds: float


@dataclass(frozen=True)
class TunedKernel:
    """A kernel that was measured in several variants."""

    kernel: str
    """What it computes, as `qdialect.interface.Tunable` has it."""
    trials: tuple[Trial, ...]
    """What the cost model chose comes first."""
    chosen: str
    """The variant of one of `trials`."""
    gain: float
    """The share of the time of the model's choice that the chosen one saves; 0 where that is the chosen one."""
    was_kept: bool
    """Whether all of this was measured before, and came from the cache."""

    @property
    def seconds(self) -> float:
        """What the model's choice takes."""
        return self.trials[0].seconds


@dataclass(frozen=True)
class TuningReport:
    """All kernels of a network of which there are variants."""

    target: str
    kernels: tuple[TunedKernel, ...]

    @property
    def gain(self) -> float:
        """The share of the time of these kernels that was won."""
        total = sum(one.seconds for one in self.kernels)
        return sum(one.seconds * one.gain for one in self.kernels) / total if total else 0.0

    @property
    def changed(self) -> tuple[TunedKernel, ...]:
        """The kernels that are not as the cost model chose."""
        return tuple(one for one in self.kernels if one.gain)


def joined(reports: Iterable[TuningReport | None]) -> TuningReport | None:
    """The report of several networks together, each kernel once; None where none was tuned."""
    found = [report for report in reports if report is not None]
    kernels = {one.kernel: one for report in reversed(found) for one in reversed(report.kernels)}
    return TuningReport(found[0].target, tuple(reversed(kernels.values()))) if found else None
