"""Random inputs of a network, and compiled results against the reference's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.support.interface import BFLOAT16, Array, Port


def differing(wanted: NDArray[Any], found: NDArray[Any]) -> int:
    """Number of elements in which two arrays of one shape differ; NaN is like NaN."""
    both_nan = np.isnan(wanted) & np.isnan(found)
    return int(np.count_nonzero((wanted != found) & ~both_nan))


@dataclass(frozen=True)
class Difference:
    """The first element of an array that differs."""

    array: str
    """Name of the array."""
    index: tuple[int, ...]
    expected: str
    found: str

    def __str__(self) -> str:
        element = f"{self.array}[{', '.join(map(str, self.index))}]" if self.index else self.array
        return f"{element} must be {self.expected}, but got {self.found}"


def differing_bits(wanted: NDArray[Any], found: NDArray[Any]) -> NDArray[np.bool_]:
    """Where two arrays of one shape and dtype have different bits, but for NaN, which is like NaN."""
    bits = np.dtype(f"u{wanted.itemsize}")
    both_nan = np.isnan(wanted) & np.isnan(found)
    return (np.ascontiguousarray(wanted).view(bits) != np.ascontiguousarray(found).view(bits)) & ~both_nan


def first_difference(name: str, wanted: NDArray[Any], found: NDArray[Any]) -> Difference | None:
    """The first element in row-major order whose bits differ; None where all are equal."""
    mask = differing_bits(wanted, found)
    if not mask.any():
        return None
    index = tuple(int(i) for i in np.unravel_index(int(mask.argmax()), mask.shape))
    return Difference(name, index, str(wanted[index]), str(found[index]))


def random_inputs(ports: Sequence[Port], seed: int) -> list[Array]:
    """Arrays that fit `ports`: integers over their whole range, floats of a standard normal distribution."""
    rng = np.random.default_rng(seed)
    return [_random(rng, port) for port in ports]


def _random(rng: np.random.Generator, port: Port) -> Array:
    if port.dtype.kind == "f" or port.dtype == BFLOAT16:
        return np.asarray(rng.normal(size=port.shape), dtype=port.dtype)
    if port.dtype.kind == "b":
        return rng.integers(0, 2, port.shape).astype(port.dtype)
    low, high = np.iinfo(port.dtype.name).min, np.iinfo(port.dtype.name).max
    return np.asarray(rng.integers(low, high, port.shape, dtype=port.dtype.name, endpoint=True))
