"""How far an engine's outputs are from the right ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# A tie in a convolution's code becomes so many steps where the activation after it has a finer scale.
_TIES = 1e-4
_STEPS = 3


@dataclass(frozen=True)
class Agreement:
    """Of integers the differences count in steps, of floats as numbers."""

    elements: int
    different: int
    largest: float
    """The largest difference; infinite where shapes or number of outputs differ."""

    @property
    def share(self) -> float:
        """Share of elements that differ."""
        return self.different / max(self.elements, 1)

    @property
    def is_exact(self) -> bool:
        """Whether the outputs are the right ones but for a step in a few places, where a tie fell the other way."""
        return self.different == 0 or (self.share < _TIES and self.largest <= _STEPS)


def agreement(wanted: Sequence[Array], found: Sequence[Array]) -> Agreement:
    """Compare lists of outputs."""
    elements = sum(array.size for array in wanted)
    shapes = [array.shape for array in wanted]
    if [array.shape for array in found] != shapes:
        return Agreement(elements, elements, float("inf"))
    different, largest = 0, 0.0
    for right, array in zip(wanted, found, strict=True):
        with np.errstate(invalid="ignore"):
            gaps = np.abs(right.astype(np.float64) - array.astype(np.float64))
        # Equal infinities have no difference.
        gaps[right == array] = 0
        different += int(np.count_nonzero(gaps))
        largest = max(largest, float(np.max(gaps, initial=0)))
    return Agreement(elements, different, largest)
