"""How the results of units agree with those of the framework, element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tools.zoo.frameworks.runner import Array

_NAMED = 5


@dataclass(frozen=True)
class Agreement:
    """Of the quantized results of units, each of which was computed from the framework's own tensors."""

    units: int
    different: int
    """Elements that are not equal."""
    elements: int
    steps: int
    """The largest difference of quantized values."""
    names: tuple[str, ...] = ()
    """The units with the most different elements, and how many those are."""


def agreement(found: Sequence[Mapping[str, Array]], wanted: Sequence[Mapping[str, Array]]) -> Agreement:
    """Of the results of some samples, by the names of tensors, to those of the framework."""
    steps: dict[str, int] = {}
    counts: dict[str, int] = {}
    for one, other in zip(found, wanted, strict=True):
        for name, array in other.items():
            apart = np.abs(one[name].astype(np.int64) - array)
            steps[name] = max(steps.get(name, 0), int(apart.max(initial=0)))
            counts[name] = counts.get(name, 0) + int((apart > 0).sum())
    worst = sorted((name for name, count in counts.items() if count), key=lambda name: -counts[name])
    elements = sum(array.size for other in wanted for array in other.values())
    names = tuple(f"{name} ({counts[name]})" for name in worst[:_NAMED])
    return Agreement(len(counts), sum(counts.values()), elements, max(steps.values(), default=0), names)
