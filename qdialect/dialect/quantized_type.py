"""What quantized values are: their parameters and the integers that hold them."""

from __future__ import annotations

from dataclasses import dataclass

from qdialect.dialect.type_constraints import ELEMENT_RANGES
from qdialect.quant_math import QuantParams


@dataclass(frozen=True)
class QuantizedType(QuantParams):
    """Per-tensor parameters and the element type, ``i8`` or ``ui8``."""

    element: str

    @property
    def range(self) -> tuple[int, int]:
        """The smallest and the largest value that the element type holds."""
        return ELEMENT_RANGES[self.element]
