"""Why a unit differs from the framework's: whose result is how far from what the truth makes of the same tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tools.zoo.frameworks.runner import Array
from tools.zoo.truth.tracing import Exact
from tools.zoo.units.ties import rounding_distance


@dataclass(frozen=True)
class Cause:
    """Of a unit with elements that differ, all computed from the framework's own tensors."""

    name: str
    different: int
    """Elements."""
    ours: float
    """How far the truth would have to move to round as ours, in steps of its quantization, at most."""
    framework: float
    """The same of the framework's."""


def causes(
    found: Sequence[Mapping[str, Array]], wanted: Sequence[Mapping[str, Array]], exact: Sequence[Mapping[str, Exact]]
) -> tuple[Cause, ...]:
    """Of the results of some samples, by the names of tensors, those first that differ most."""
    names = dict.fromkeys(name for other in wanted for name in other)
    samples = list(zip(found, wanted, exact, strict=True))
    every = [_cause(name, [(one[name], other[name], truth[name]) for one, other, truth in samples]) for name in names]
    return tuple(sorted((cause for cause in every if cause.different), key=lambda cause: -cause.different))


def _cause(name: str, samples: Sequence[tuple[Array, Array, Exact]]) -> Cause:
    different, ours, framework = 0, 0.0, 0.0
    for found, wanted, exact in samples:
        at = np.nonzero(found != wanted)
        different += at[0].size
        ours = max(ours, float(rounding_distance(found, exact)[at].max(initial=0)))
        framework = max(framework, float(rounding_distance(wanted, exact)[at].max(initial=0)))
    return Cause(name, different, ours, framework)
