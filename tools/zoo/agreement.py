"""How results agree: with others, with the truth, and with the framework's unit by unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.bench.truth import Exact
from qdialect.support.interface import Array

# An output that is constant has no range; its distance is an absolute one.
_SMALLEST_RANGE = 1e-12


@dataclass(frozen=True)
class Distance:
    """Mean and largest distance over all elements, as shares of the range of each output."""

    mean: float
    maximum: float


@dataclass(frozen=True)
class Difference:
    """How many of the elements of two results are not the same."""

    different: int
    elements: int
    maximum: float
    """The largest difference, as a share of the range of its output."""


def distance(found: Sequence[Sequence[Array]], truth: Sequence[Sequence[Array]]) -> Distance:
    """Of the outputs of some samples to their truth, of the same shapes.

    Raises `ValueError` where counts or shapes differ.
    """
    errors = [_errors(one, wanted) for one, wanted in _pairs(found, truth)]
    every = np.concatenate([error.reshape(-1) for error in errors])
    return Distance(float(every.mean()), float(every.max()))


def difference(found: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]]) -> Difference:
    """Of the outputs of some samples to those of a framework; raises `ValueError` where counts or shapes differ."""
    pairs = list(_pairs(found, wanted))
    different = sum(int((one != other).sum()) for one, other in pairs)
    elements = sum(other.size for _, other in pairs)
    return Difference(different, elements, max(float(_errors(one, other).max()) for one, other in pairs))


def _pairs(found: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]]) -> list[tuple[Array, Array]]:
    pairs = [pair for one, other in zip(found, wanted, strict=True) for pair in zip(one, other, strict=True)]
    for one, other in pairs:
        if one.shape != other.shape:
            raise ValueError(f"output must have shape {other.shape}, but got {one.shape}")
    return pairs


def _errors(found: Array, wanted: Array) -> Array:
    exact = wanted.astype(np.float64)
    return np.abs(found.astype(np.float64) - exact) / max(float(np.ptp(exact)), _SMALLEST_RANGE)


# How the results of units agree with those of the framework, element by element.

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


# How quantized results agree with those of exact arithmetic, and how near to a tie those lie that do not.


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


# Why a unit differs from the framework's: whose result is how far from what the truth makes of the same tensors.


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
