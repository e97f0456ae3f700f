"""Which variant of a kernel is taken: one that is faster than the cost model's choice by more than noise, or none.

With t_i and m_i the times of a variant and of the model's choice in round i, which follow each other at once, what
changes from round to round is in both, and not in the ratios r_i = t_i / m_i.  A variant saves

  g = 1 - median(r)

and is taken where g is more than `MARGIN` and more than the distance between the quartiles of r, the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

MARGIN = 0.02
"""What a variant must save at least, as a share of the time."""

Times = NDArray[np.floating[Any]]
"""Seconds of a kernel, round by round."""


def gain(own: Times, model: Times) -> float:
    """The share of the time that a variant saves; 0 where that is no more than noise."""
    if not model.all():
        # The clock does not see it.
        return 0.0
    low, middle, high = np.quantile(own / model, (0.25, 0.5, 0.75))
    saved = float(1 - middle)
    return saved if saved > max(MARGIN, float(high - low)) else 0.0


def fastest(variants: Mapping[str, Times], model: Times) -> tuple[str, float]:
    """The variant that saves most, and how much; an empty name and 0 where the model's choice stays."""
    gains = {name: gain(own, model) for name, own in variants.items()}
    best = max(gains, key=lambda name: gains[name], default="")
    return (best, gains[best]) if best and gains[best] else ("", 0.0)
