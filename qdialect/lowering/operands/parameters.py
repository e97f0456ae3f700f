"""Arrays that kernels read beside their data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True)
class Parameter:
    """One array a requantization reads: per channel, or of one entry."""

    name: str
    element: str
    values: NDArray[Any]
