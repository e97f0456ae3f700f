"""Scale and zero point of a range of f32 values in i8 (TFLite tensor_utils AsymmetricQuantizeFloats)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.scales import FloatArray

LOWEST, HIGHEST = -128.0, 127.0


def range_scale(minimum: FloatArray, maximum: FloatArray) -> FloatArray:
    """``(max - min) / 255`` of ranges that are widened to zero, in float32; 1 for a range of nothing but zero."""
    with np.errstate(all="ignore"):
        return _scale(*_ends(minimum, maximum)).astype(np.float32)


def range_zero_point(minimum: FloatArray, maximum: FloatArray) -> FloatArray:
    """The whole number in [-128, 127] for zero, computed from the end of the range whose terms are smaller.

    The width of the range is a difference of float32, what is computed from it is float64.
    """
    low, high = _ends(minimum, maximum)
    with np.errstate(all="ignore"):
        scale = _scale(low, high)
        below, above = low / scale, high / scale
        exact = np.where(HIGHEST + 1 - below < HIGHEST + above, LOWEST - below, HIGHEST - above)
        whole = np.floor(np.abs(exact))
        rounded = np.copysign(whole + (np.abs(exact) - whole >= 0.5), exact)
        nudged = np.where(exact <= LOWEST, LOWEST, np.where(exact >= HIGHEST, HIGHEST, rounded))
    return np.where(low == high, 0.0, nudged).astype(np.float32)


def _ends(minimum: FloatArray, maximum: FloatArray) -> tuple[FloatArray, FloatArray]:
    zero = np.float32(0)
    return np.where(minimum < 0, minimum, zero), np.where(maximum > 0, maximum, zero)


def _scale(low: FloatArray, high: FloatArray) -> NDArray[np.float64]:
    return np.where(low == high, 1.0, (high - low).astype(np.float64) / (HIGHEST - LOWEST))
