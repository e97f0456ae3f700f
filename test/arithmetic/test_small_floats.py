"""Floats of 16 bits against NumPy's and ml_dtypes' conversions: every number, and f32 numbers around every rounding."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from qdialect.arithmetic.machine import NUMPY
from qdialect.arithmetic.small_floats import ROUND, WIDEN

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
BITS = np.arange(2**16).astype(np.uint16).view(np.int16)


@pytest.mark.parametrize("element", DTYPES)
def test_all_numbers_are_widened(element: str) -> None:
    found, wanted = WIDEN[element](NUMPY, BITS), BITS.view(DTYPES[element]).astype(np.float32)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("element", DTYPES)
def test_numbers_are_rounded_half_to_even(element: str) -> None:
    """At, beside and halfway between all numbers, overflow and subnormal ones among them."""
    around = np.array([-1, 0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001], np.int32)
    bits = (WIDEN[element](NUMPY, BITS).view(np.int32)[:, None] + around).ravel()
    drawn = np.random.default_rng(0).integers(-(2**31), 2**31, 100_000).astype(np.int32)
    numbers = np.concatenate([bits, drawn]).view(np.float32)
    with np.errstate(all="ignore"):
        wanted = numbers.astype(DTYPES[element])
        found = ROUND[element](NUMPY, numbers).view(DTYPES[element])
    np.testing.assert_array_equal(np.isnan(found), np.isnan(numbers))
    is_number = ~np.isnan(numbers)
    np.testing.assert_array_equal(found[is_number].view(np.int16), wanted[is_number].view(np.int16))
