"""Softmax: the fixed point stays close to the real function, its tables are what the op uses, and float rounds once."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import plain_arithmetic as plain

from qdialect.arithmetic.fixed_point_functions import exponential
from qdialect.arithmetic.machine import NUMPY
from qdialect.arithmetic.softmax_tables import reciprocal, share_shift, softmax_tables
from qdialect.reference.qnn_evaluators import softmax_fixed, softmax_float


@given(x=st.integers(-(2**31) + 1, 0))
def test_exponential_is_close_to_the_real_one(x: int) -> None:
    got = int(exponential(np.array([x], dtype=np.int64), 5, 32)[0])
    assert abs(got / 2**31 - math.exp(x / 2**26)) < 3e-7


@given(total=st.integers(1, 2**31 - 1))
def test_reciprocal_equals_exact_integers(total: int) -> None:
    word = np.array([total], np.int32)
    assert (int(reciprocal(NUMPY, word)[0]), 35 - int(share_shift(NUMPY, word)[0])) == plain.reciprocal(total)


@given(total=st.integers(2**19, 2**31 - 1))
def test_reciprocal_is_close_to_the_real_one(total: int) -> None:
    word = np.array([total], np.int32)
    scale, shift = int(reciprocal(NUMPY, word)[0]), int(share_shift(NUMPY, word)[0])
    # A share has 8 bits below its point.
    assert abs(scale / 2.0 ** (shift + 8) * (total / 2**19) - 1) < 1e-6


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@given(scale=st.floats(2.0**-10, 1.0, width=32), seed=st.integers(0, 10**6), size=st.integers(1, 60))
def test_fixed_point_is_within_one_value_of_the_real_softmax(dtype: str, scale: float, seed: int, size: int) -> None:
    values = np.random.default_rng(seed).integers(0, 256, (3, size)).astype(np.uint8).view(dtype)
    got = softmax_fixed(values, -1, softmax_tables(scale, 1.0))
    f32 = np.exp(scale * (values.astype(np.float64) - values.max(axis=-1, keepdims=True)))
    f32 /= f32.sum(axis=-1, keepdims=True)
    lowest = np.iinfo(dtype).min
    assert np.all(np.abs(got - lowest - np.minimum(f32 * 256, 255)) <= 1)


def test_distances_beyond_the_radius_have_no_probability() -> None:
    tables = softmax_tables(1.0, 1.0)
    assert tables.exponentials[0] == 2**31 - 1
    assert tables.addends[0] == 2**19
    assert np.all(np.diff(tables.exponentials.astype(np.int64)) <= 0)
    assert tables.exponentials[15] > 0
    assert np.all(tables.exponentials[16:] == 0)


def test_the_axis_may_be_any() -> None:
    values = np.random.default_rng(1).integers(-128, 128, (4, 5, 6)).astype(np.int8)
    tables = softmax_tables(0.05, 1.5)
    for axis in range(3):
        moved = np.moveaxis(values, axis, -1)
        assert np.array_equal(
            np.moveaxis(softmax_fixed(values, axis, tables), axis, -1), softmax_fixed(moved, -1, tables)
        )
        parameters = (0.05, 1.5, 1 / 256, -128, -128, 127)
        of_last = softmax_float(moved, -1, *parameters)
        assert np.array_equal(np.moveaxis(softmax_float(values, axis, *parameters), axis, -1), of_last)


def test_a_vanishing_scale_is_refused() -> None:
    with pytest.raises(ValueError, match=r"input scale times beta must exceed 2\^-26"):
        softmax_tables(1e-9, 1.0)


@given(seed=st.integers(0, 10**6), size=st.integers(1, 40))
def test_float_softmax_rounds_the_real_one(seed: int, size: int) -> None:
    values = np.random.default_rng(seed).integers(-128, 128, (2, size)).astype(np.int8)
    got = softmax_float(values, -1, 0.1, 0.5, 0.01, -50, -128, 127)
    f32 = np.exp(0.05 * values.astype(np.float64))
    f32 /= f32.sum(axis=-1, keepdims=True)
    assert np.all(np.abs(got + 50 - f32 / 0.01) <= 0.5 + 1e-4)


def test_float_softmax_sums_in_order() -> None:
    """A run of small terms vanishes when it is added to one one by one, and counts when it is added before it."""
    small = np.full(4096, -118, dtype=np.int8)
    large = np.array([127], dtype=np.int8)
    scale, parameters = math.log(2) * 25 / 245, (1.0, 2.0**-14, 0, 0, 2**20)
    first = softmax_float(np.concatenate([large, small]), 0, scale, *parameters)
    last = softmax_float(np.concatenate([small, large]), 0, scale, *parameters)
    assert first[0] == 2**14
    # 4096 terms of 2^-25 make the sum 1 + 2^-13.
    assert last[-1] == 2**14 - 2


def test_a_tiny_output_scale_saturates() -> None:
    assert softmax_float(np.array([3, 3], dtype=np.int8), 0, 0.1, 1.0, 1e-39, 0, -128, 127).tolist() == [127, 127]
