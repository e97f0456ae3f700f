"""The clamp that a fused activation is."""

from __future__ import annotations

import math

import numpy as np
import tflite

from qdialect.frontends.common import require
from qdialect.frontends.tflite.model import Tensor
from qdialect.frontends.tflite.operators.checks import quantized_range

_BOUNDS: dict[int, tuple[float | None, float | None]] = {
    tflite.ActivationFunctionType.NONE: (None, None),
    tflite.ActivationFunctionType.RELU: (0.0, None),
    tflite.ActivationFunctionType.RELU_N1_TO_1: (-1.0, 1.0),
    tflite.ActivationFunctionType.RELU6: (0.0, 6.0),
}


def activation_range(activation: int, output: Tensor) -> tuple[int, int]:
    """Smallest and largest quantized value after a fused activation (TFLite CalculateActivationRangeQuantized).

    A real bound b is quantized to ``z + half_away(float32(b) / float32(s))``, which is intersected with the type's
    range.
    """
    return quantized_bounds(*f32_bounds(activation), output)


def f32_bounds(activation: int) -> tuple[float | None, float | None]:
    """The bounds of a fused activation; None for an open end."""
    require(activation in _BOUNDS, f"fused activation {activation} is not supported")
    return _BOUNDS[activation]


def quantized_bounds(minimum: float | None, maximum: float | None, output: Tensor) -> tuple[int, int]:
    """The quantized values of two real bounds; None stands for the end of the type's range."""
    low, high = quantized_range(output)
    # The other end of the type bounds the values too: a clamp outside the type's range leaves one value.
    bounds = (
        low if minimum is None else _quantized(minimum, output),
        high if maximum is None else _quantized(maximum, output),
    )
    return min(max(bounds[0], low), high), max(min(bounds[1], high), low)


def _quantized(bound: float, output: Tensor) -> int:
    with np.errstate(all="ignore"):
        ratio = float(np.float32(bound) / np.float32(output.scale))
    require(math.isfinite(ratio), f"output scale must be positive and finite, but got {output.scale}")
    rounded = math.floor(abs(ratio) + 0.5)
    return output.zero_point + (rounded if ratio >= 0 else -rounded)
