"""How far an engine's outputs are from the right ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# A tie in a convolution's result becomes a difference of up to three where the activation after it has a finer scale.
_TIES = 1e-4
_LARGEST = 3


@dataclass(frozen=True)
class Agreement:
    """Of integers the differences are differences of quantized values, of floats those of the numbers."""

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
        """Whether the outputs are the right ones, a few rounded ties aside."""
        return self.different == 0 or (self.share < _TIES and self.largest <= _LARGEST)


def agreement(wanted: Sequence[Array], found: Sequence[Array], tolerance: float = 0.0) -> Agreement:
    """Compare lists of outputs; a difference within `tolerance` of the right number, or of 1, does not count."""
    elements = sum(array.size for array in wanted)
    shapes = [array.shape for array in wanted]
    if [array.shape for array in found] != shapes:
        return Agreement(elements, elements, float("inf"))
    different, largest = 0, 0.0
    for right, array in zip(wanted, found, strict=True):
        with np.errstate(invalid="ignore"):
            gaps = np.abs(right.astype(np.float64) - array.astype(np.float64))
            allowed = tolerance * np.maximum(np.abs(right), 1) if tolerance else 0
        # Equal infinities have no difference.
        gaps[(right == array) | (gaps <= allowed)] = 0
        different += int(np.count_nonzero(gaps))
        largest = max(largest, float(np.max(gaps, initial=0)))
    return Agreement(elements, different, largest)
