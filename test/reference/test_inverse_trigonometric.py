"""Inverse trigonometric functions of kernels, against float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdialect.arithmetic import activations
from qdialect.arithmetic.expressions import Expression

Array = NDArray[Any]

NUMBERS = np.concatenate(
    [np.linspace(-1, 1, 20001), np.random.default_rng(0).normal(size=9999) * 3, [np.inf, -np.inf, 1e30, -1e-30]]
).astype(np.float32)


@pytest.mark.parametrize(
    ("function", "truth"),
    [
        (activations.acos, np.arccos),
        (activations.asin, np.arcsin),
        (activations.atan, np.arctan),
    ],
)
def test_three_units_of_the_last_place(function: Expression, truth: Callable[[Array], Array]) -> None:
    with np.errstate(invalid="ignore"):
        wanted = truth(NUMBERS.astype(np.float64))
    found = function.in_kernel(NUMBERS)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    units = np.abs(found - wanted) / np.spacing(np.abs(wanted).astype(np.float32))
    assert np.nanmax(units) <= 3
