"""The project's own e^x, e^x - 1, tanh and erf against the libraries' ones."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from qdialect.quant_math import transcendental
from qdialect.quant_math.transcendental import NumpyMachine

LIBRARY: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
}


def values() -> Any:
    """Numbers of many sizes, both signs, and the places where the algorithms change."""
    rng = np.random.default_rng(7)
    drawn = [rng.normal(size=4000) * size for size in (1e-12, 1e-6, 1e-3, 0.3, 1.0, 4.0, 30.0)]
    return np.concatenate([*drawn, [0.0, 1.0, -1.0, 6.0, -6.0, 20.0, 40.0, -40.0, 300.0, -300.0]])


@pytest.mark.parametrize("name", LIBRARY)
def test_within_a_few_units_of_the_last_place(name: str) -> None:
    x = values()
    found, wanted = getattr(transcendental, name)(NumpyMachine(), x), LIBRARY[name](x)
    assert np.all(np.abs(found - wanted) <= 8 * np.spacing(np.abs(wanted)))


@pytest.mark.parametrize("name", LIBRARY)
def test_the_same_float32(name: str) -> None:
    x = values().astype(np.float32).astype(np.float64)
    found, wanted = getattr(transcendental, name)(NumpyMachine(), x), LIBRARY[name](x)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


def test_ends_of_the_range() -> None:
    x = np.array([np.inf, -np.inf, np.nan])
    machine = NumpyMachine()
    with np.errstate(all="ignore"):
        found = [getattr(transcendental, name)(machine, x).astype(np.float32).tolist() for name in LIBRARY]
    assert found[0][:2] == [math.inf, 0.0]
    assert found[1][:2] == [math.inf, -1.0]
    assert found[2][:2] == [1.0, -1.0]
    assert found[3][:2] == [1.0, -1.0]
    assert all(math.isnan(row[2]) for row in found)
