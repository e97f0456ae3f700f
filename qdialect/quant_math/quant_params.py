"""How quantized values stand for real values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

QuantizedArray = NDArray[np.integer[Any]]
"""Quantized values, of 8 bits unless a function says otherwise."""


@dataclass(frozen=True)
class QuantParams:
    """Per-tensor quantization: the quantized value q stands for ``scale * (q - zero_point)``."""

    scale: float
    zero_point: int
