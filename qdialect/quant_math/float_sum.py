"""The sum of two quantized tensors as one float32 expression of two multiply-adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.fixed_point import IntArray

FloatSum = tuple[np.float32, np.float32, np.float32]


def float_sum_numbers(scales: Sequence[float], zero_points: Sequence[int]) -> FloatSum:
    """r_1, r_2 and k of `float_sum`; `scales` and `zero_points` are of the first operand, the second and the sum.

    r = s / s_y and k = z_y - fma(r_1, z_1, r_2 * z_2), in float32.
    """
    first, second = (np.float32(scale) / np.float32(scales[2]) for scale in scales[:2])
    inner = np.float32(second * np.float32(zero_points[1]))
    total = _multiply_add(np.array(zero_points[0]), first, inner)
    return first, second, np.float32(np.float32(zero_points[2]) - total)


def float_sum(first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]], numbers: FloatSum) -> IntArray:
    """half_even(fma(q_1, r_1, fma(q_2, r_2, k))) clamped to int32, with fma(x, m, c) = x * m + c rounded once.

    The order of MLAS, ONNX Runtime's kernels, on CPUs that have FMA.
    """
    total = _multiply_add(first, numbers[0], _multiply_add(second, numbers[1], numbers[2]))
    # Beyond int32 only the side matters, and float32 reaches where int64 does not.
    bounds = np.iinfo(np.int32)
    return np.clip(np.rint(total.astype(np.float64)), bounds.min, bounds.max).astype(np.int64)


def _multiply_add(
    values: NDArray[np.integer[Any]], ratio: np.float32, addend: NDArray[np.float32] | np.float32
) -> NDArray[np.float32]:
    """quantized values * ratio + addend; in float64 the product of a quantized value and a float32 number is exact."""
    with np.errstate(over="ignore"):
        return np.asarray(values.astype(np.float64) * np.float64(ratio) + np.float64(addend), np.float32)
