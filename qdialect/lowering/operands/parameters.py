"""Arrays that kernels read beside their data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

REST_OF_WORDS, SHIFT_OF_WORDS = "word_rest", "word_shift"
BITS_OF = {REST_OF_WORDS: 15, SHIFT_OF_WORDS: 3}
"""Bits of 32-bit numbers that are not negative, by the beginning of the parameter's name."""


@dataclass(frozen=True)
class Parameter:
    """One array a requantization reads: per channel, or of one entry."""

    name: str
    element: str
    values: NDArray[Any]
