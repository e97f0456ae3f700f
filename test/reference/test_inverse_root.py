"""The fixed-point inverse square root is near the real one, and exact where its definition says so."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import plain_arithmetic as plain

from qdialect.arithmetic.fixed_point_functions import inverse_roots


@pytest.mark.parametrize("value", [*range(2, 300), 65025 * 7, 2**28, 2**29 - 1, 2**29, 2**31 - 1])
def test_is_near_the_real_root(value: int) -> None:
    (q,), (shift,) = inverse_roots(np.array([value]))
    assert shift >= 0
    assert abs(q * 2.0 ** float(-31 - shift) * math.sqrt(value) - 1) < 1e-5


@given(st.lists(st.integers(0, 30).flatmap(lambda bits: st.integers(0, 2 ** (bits + 1) - 1)), min_size=1))
def test_equals_exact_integers(values: list[int]) -> None:
    assert list(zip(*inverse_roots(np.array(values)), strict=True)) == [plain.inverse_root(value) for value in values]


@pytest.mark.parametrize("value", [0, 1])
def test_zero_counts_as_one(value: int) -> None:
    assert inverse_roots(np.array([value])) == (2**31 - 1, 0)
