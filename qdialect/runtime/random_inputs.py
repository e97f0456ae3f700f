"""Random inputs of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.interface import Port

Array = NDArray[Any]


def random_inputs(ports: Sequence[Port], seed: int) -> list[Array]:
    """Arrays that fit `ports`: integers over their whole range, floats of a standard normal distribution."""
    rng = np.random.default_rng(seed)
    return [_random(rng, port) for port in ports]


def _random(rng: np.random.Generator, port: Port) -> Array:
    if port.dtype.kind == "f":
        return np.asarray(rng.normal(size=port.shape), dtype=port.dtype)
    if port.dtype.kind == "b":
        return rng.integers(0, 2, port.shape).astype(port.dtype)
    low, high = np.iinfo(port.dtype.name).min, np.iinfo(port.dtype.name).max
    return np.asarray(rng.integers(low, high, port.shape, dtype=port.dtype.name, endpoint=True))
