"""Forms of a requantization beside products, sums and shifts of 32 bits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RequantizerForms:
    """Those that a target is fast at."""

    multiply_adds: bool = False
    """Fused multiply-adds of float32 numbers."""
    words: bool = False
    """Sums and shifts of packed words, each by a number of its own."""


NO_FORMS = RequantizerForms()
"""None of them."""
