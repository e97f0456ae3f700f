"""Compiled results against the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def differing(wanted: NDArray[Any], found: NDArray[Any]) -> int:
    """Number of elements in which two arrays of one shape differ; NaN is like NaN."""
    both_nan = np.isnan(wanted) & np.isnan(found)
    return int(np.count_nonzero((wanted != found) & ~both_nan))
