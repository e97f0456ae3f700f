"""How a tensor is quantized per tensor, with the arithmetic of a runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.common import Array
from qdialect.profiles import Profile
from qdialect.quant_math import QuantParams, dequantize_array, quantize_array, same_scale


@dataclass(frozen=True)
class QuantizedTensorType:
    """``q = clip(round(x / scale) + zero_point, minimum, maximum)`` with the rounding and division of `profile`.

    `element` is the dialect's name of the quantized type (``"ui8"``).
    """

    profile: Profile
    element: str
    params: QuantParams
    minimum: int
    maximum: int

    @classmethod
    def full_range(cls, profile: Profile, element: str, scale: float, zero_point: int) -> Self:
        """Parameters whose bounds are those of the element type."""
        return cls(profile, element, QuantParams(scale, zero_point), *ELEMENT_RANGES[element])

    @property
    def scale(self) -> float:
        """That of `params`."""
        return self.params.scale

    @property
    def zero_point(self) -> int:
        """That of `params`."""
        return self.params.zero_point

    @property
    def is_narrow(self) -> bool:
        """Whether the quantized values leave out some of the type's."""
        return (self.minimum, self.maximum) != ELEMENT_RANGES[self.element]

    def same_meaning(self, other: QuantizedTensorType) -> bool:
        """Whether a quantized value stands for the same f32 value in both."""
        same_points = (self.element, self.zero_point) == (other.element, other.zero_point)
        return same_points and same_scale(self.scale, other.scale)

    def quantize(self, f32_values: Array) -> Array:
        """The quantized values of f32 values, of the same shape."""
        how = (self.profile.float_rounding, self.profile.scaling, self.profile.nan)
        dtype = NUMPY_DTYPES[self.element]
        values = quantize_array(f32_values.astype(np.float32), self.scale, self.zero_point, 0, dtype, *how)
        return np.clip(values, self.minimum, self.maximum)

    def quantize_scalar(self, f32_value: float) -> int:
        """The quantized value of one f32 value."""
        return int(self.quantize(np.array([f32_value], dtype=np.float32))[0])

    def dequantize(self, values: Array) -> Array:
        """The f32 values of quantized values: ``float32(q - zero_point) * float32(scale)``."""
        return dequantize_array(values, self.scale, self.zero_point, 0)
