"""Requantization to 16 bits and its tables, against exact arithmetic."""

from fractions import Fraction
from math import exp, floor

import numpy as np
import pytest

from qdialect.arithmetic import Multiplier, real_functions
from qdialect.arithmetic.choices import I16Rounding
from qdialect.arithmetic.requantization import i16_requantize, reduced_multiplier, reduced_multipliers
from qdialect.arithmetic.tflite_tables import lines_of, sigmoid_lines, table_of

LOW, HIGH = -(2**15), 2**15 - 1
TIES = np.array([-3, -2, -1, 0, 1, 2, 3, 5])


def requantized(acc: np.ndarray, factor: float, rounding: I16Rounding) -> list[int]:
    return i16_requantize(acc.astype(np.int64), factor, (1.0,), 1.0, LOW, HIGH, rounding, Multiplier.F64).tolist()


def test_ties() -> None:
    assert requantized(TIES, 0.5, I16Rounding.FIXED16_UP) == [-1, -1, 0, 0, 1, 1, 2, 3]
    assert requantized(TIES, 0.5, I16Rounding.F64_NEAREST) == [-2, -1, -1, 0, 1, 1, 2, 3]
    # By 1/4 the first rounding takes half of -1 up to 0, half of 1 to 1; the second takes ties away from zero.
    assert requantized(TIES, 0.25, I16Rounding.FIXED32_DOUBLE) == [-1, -1, 0, 0, 1, 1, 1, 2]


def test_multipliers_of_15_bits() -> None:
    assert reduced_multiplier(2**30, 1) == (2**14, 14)
    assert reduced_multiplier(2**31 - 1, 0) == (2**15 - 1, 15)
    assert reduced_multiplier(0x4000_8000, -3) == (0x4001, 18)
    with pytest.raises(ValueError, match=r"multipliers must be below 2\^14"):
        reduced_multipliers(np.array([2.0**14]))


def test_a_product_of_doubles_is_rounded_once() -> None:
    """Against the exact product of the integer and the double, which is next to no tie here."""
    rng = np.random.default_rng(0)
    acc, factor = rng.integers(-(2**45), 2**45, 1000), 7.3e-11
    wanted = [min(max(floor(Fraction(int(a)) * Fraction(factor) + Fraction(1, 2)), LOW), HIGH) for a in acc]
    assert requantized(acc, factor, I16Rounding.F64_NEAREST) == wanted


def test_what_exceeds_16_bits_is_clamped() -> None:
    for rounding in (I16Rounding.FIXED16_UP, I16Rounding.F64_NEAREST):
        assert requantized(np.array([-(2**20), 2**20]), 1.0, rounding) == [LOW, HIGH]


def test_a_table_of_exponentials_is_near_the_function() -> None:
    lines = lines_of(table_of(real_functions.exp, 1e-4, 1e-3, 0, np.float32))
    x = np.arange(LOW, HIGH + 1)
    index, rest = (x - LOW) >> 7, (x - LOW) & 127
    found = ((lines.bases[index] << 7) + rest * lines.slopes[index] + 64) >> 7
    # The kernel lays 512 segments over 65,535 steps, which shifts the last of 65,536 values by one.
    assert np.abs(found - np.exp(x * 1e-4) * 1000).max() < 1e-4 * 26_489 + 1


def test_a_slope_wraps_to_16_bits() -> None:
    assert lines_of(np.array([-30000, 30000, 0])).slopes.tolist() == [60000 - 2**16, -30000]


def test_the_sigmoid_s_table_lies_above_the_function_between_its_ends() -> None:
    lines = sigmoid_lines(9, 65534)
    assert (len(lines.bases), lines.bases[0], lines.bases[-1], lines.slopes[-1]) == (256, 2**15, 65534, 0)
    values = [65536 / (1 + exp(-i / 24)) for i in range(255)]
    assert np.abs(lines.bases[:255] - values).max() < 1.2
