"""How far results are from each other and from the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

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
