"""The project's own transcendental functions against the libraries' ones."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from qdialect.arithmetic import transcendental
from qdialect.arithmetic.transcendental import NUMPY

LIBRARY: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
}


def values() -> Any:
    """Numbers of many sizes, both signs, and the points where the algorithms change."""
    rng = np.random.default_rng(7)
    drawn = [rng.normal(size=4000) * size for size in (1e-12, 1e-6, 1e-3, 0.3, 1.0, 4.0, 30.0)]
    return np.concatenate([*drawn, [0.0, 1.0, -1.0, 6.0, -6.0, 20.0, 40.0, -40.0, 300.0, -300.0]])


@pytest.mark.parametrize("name", LIBRARY)
def test_within_a_few_units_of_the_last_place(name: str) -> None:
    x = values()
    with np.errstate(all="ignore"):
        found, wanted = getattr(transcendental, name)(NUMPY, x), LIBRARY[name](x)
    x, found, wanted = (array[np.isfinite(wanted)] for array in (x, found, wanted))
    assert np.all(np.abs(found - wanted) <= 8 * np.spacing(np.abs(wanted)))


@pytest.mark.parametrize("name", LIBRARY)
def test_the_same_float32(name: str) -> None:
    x = values().astype(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        found, wanted = getattr(transcendental, name)(NUMPY, x), LIBRARY[name](x)
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


def test_powers() -> None:
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1e-30, 7.3])
    drawn = np.random.default_rng(1).normal(size=(2, 500)) * 3
    x, y = (np.concatenate(pair).astype(np.float32).astype(np.float64) for pair in (
        (np.repeat(special, len(special)), drawn[0]), (np.tile(special, len(special)), drawn[1]),
    ))  # fmt: skip
    with np.errstate(all="ignore"):
        found, wanted = transcendental.power(NUMPY, x, y), np.power(x, y)
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


def test_zeros_keep_their_sign() -> None:
    for name in ("expm1", "tanh", "erf", "log1p"):
        found = getattr(transcendental, name)(NUMPY, np.array([0.0, -0.0]))
        assert np.signbit(found).tolist() == [False, True]


def test_ends_of_the_range() -> None:
    x = np.array([np.inf, -np.inf, np.nan])
    machine = NUMPY
    with np.errstate(all="ignore"):
        found = [getattr(transcendental, name)(machine, x).astype(np.float32).tolist() for name in LIBRARY]
    assert found[0][:2] == [math.inf, 0.0]
    assert found[1][:2] == [math.inf, -1.0]
    assert found[2][:2] == [1.0, -1.0]
    assert found[3][:2] == [1.0, -1.0]
    assert all(math.isnan(row[2]) for row in found)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_of_every_size(name: str) -> None:
    """Every float32; libraries reduce those of any size."""
    bits = np.random.default_rng(3).integers(0, 2**32, 200_000, dtype=np.uint32)
    with np.errstate(all="ignore"):
        x = bits.view(np.float32).astype(np.float64)
        found, wanted = getattr(transcendental, name)(NUMPY, x), LIBRARY[name](x)
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))
    assert np.signbit(transcendental.sin(NUMPY, np.array(-0.0)))
