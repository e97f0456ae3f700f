"""How quantized results agree with those of exact arithmetic, and how near to a tie those lie that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tools.zoo.frameworks.runner import Array
from tools.zoo.truth.tracing import Exact


@dataclass(frozen=True)
class Ties:
    """Of the quantized tensors of a network, held against the truth."""

    units: int
    """Tensors with elements that are not equal."""
    different: int
    elements: int
    distance: float
    """How far the truth would have to move to round as it was found, in steps of its quantization, at most."""


def ties(
    found: Sequence[Mapping[str, Array]],
    exact: Sequence[Mapping[str, Exact]],
    known: Sequence[Mapping[str, Array]] | None = None,
) -> Ties:
    """Of the results of some samples, by the names of tensors, to those of exact arithmetic.

    Elements that are as in `known` count as equal.
    """
    different, elements, furthest, units = 0, 0, 0.0, set[str]()
    nothing: Mapping[str, Array] = {}
    for one, other, also in zip(found, exact, known or [nothing] * len(found), strict=True):
        for name, truth in other.items():
            array = one[name]
            far = _distances(array, truth, also.get(name))
            elements += array.size
            if far.size:
                units.add(name)
                different += far.size
                furthest = max(furthest, float(far.max()))
    return Ties(len(units), different, elements, furthest)


def rounding_distance(found: Array, exact: Exact) -> Array:
    """How far each position is from the nearest one that rounds to what was found; 0 where it does so itself."""
    apart = found.astype(np.int64) - exact.values
    nearest = found - 0.5 * np.sign(apart)
    return np.where(apart == 0, 0.0, np.abs(exact.positions - nearest))


def _distances(found: Array, exact: Exact, known: Array | None) -> Array:
    """Of the elements that differ."""
    apart = found != exact.values
    return rounding_distance(found, exact)[apart if known is None else apart & (found != known)]
