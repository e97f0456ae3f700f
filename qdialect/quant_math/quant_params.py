"""How quantized values stand for f32 values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.affine import dequantize_array

QuantizedArray = NDArray[np.integer[Any]]
"""Quantized values, of 8 bits unless a function says otherwise."""


@dataclass(frozen=True)
class QuantParams:
    """Per-tensor quantization: the quantized value q stands for ``scale * (q - zero_point)``."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class BinaryQuantization:
    """What the operands and the result of a function of two tensors stand for, and the bounds of the result."""

    lhs: QuantParams
    rhs: QuantParams
    output: QuantParams
    bounds: tuple[int, int]

    @property
    def params(self) -> tuple[QuantParams, QuantParams, QuantParams]:
        """Those of lhs, rhs and the result."""
        return self.lhs, self.rhs, self.output

    def offsets(self, lhs: QuantizedArray, rhs: QuantizedArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Both operands without their zero points."""
        return lhs.astype(np.int64) - self.lhs.zero_point, rhs.astype(np.int64) - self.rhs.zero_point

    def f32_values(self, lhs: QuantizedArray, rhs: QuantizedArray) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The f32 values of both operands."""
        left, right = (
            dequantize_array(values, own.scale, own.zero_point, 0) for values, own in ((lhs, self.lhs), (rhs, self.rhs))
        )
        return left, right

    def clip(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Values of the result within its bounds."""
        return np.clip(values, *self.bounds)
