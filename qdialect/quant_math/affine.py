"""f32 values to quantized values and back: q = round(r / s) + z, r = (q - z) * s."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from qdialect.quant_math.choices import FloatRounding, NanPolicy, Scaling
from qdialect.quant_math.scales import FloatArray, scale_factors


def quantized_range(dtype: DTypeLike) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    info = np.iinfo(np.dtype(dtype).name)
    return int(info.min), int(info.max)


def round_f32(values: FloatArray, rounding: FloatRounding) -> FloatArray:
    """`values` rounded to integers, in their own floating type.

    Half up is floor(v + 1/2) with the sum rounded to that type, as runtimes compute it: the largest float32 below one
    half goes to one.  Half away is exact: v - trunc(v) has no rounding error.
    """
    if rounding is FloatRounding.HALF_EVEN:
        return np.rint(values)
    if rounding is FloatRounding.HALF_UP:
        return np.floor(values + values.dtype.type(0.5))
    whole = np.trunc(values)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values - whole) >= 0.5, whole + np.sign(values), whole).astype(values.dtype)


def saturate_f32(values: FloatArray, lo: ArrayLike, hi: ArrayLike) -> NDArray[np.int64]:
    """Whole f32 values clamped to [lo, hi], infinities included; float64 holds any int32 bound exactly."""
    return np.clip(values.astype(np.float64), lo, hi).astype(np.int64)


def nan_value(nan: NanPolicy, zero_point: ArrayLike, lo: int, hi: int) -> NDArray[np.int64]:
    """The quantized value that `nan` puts in for NaN."""
    if nan is NanPolicy.ZERO_POINT:
        return np.clip(np.asarray(zero_point, dtype=np.int64), lo, hi)
    return np.asarray({NanPolicy.ZERO: 0, NanPolicy.MIN: lo, NanPolicy.MAX: hi}[nan], dtype=np.int64)


def quantize_array(
    x: FloatArray,
    scales: ArrayLike,
    zero_points: ArrayLike,
    axis: int,
    dtype: DTypeLike,
    rounding: FloatRounding,
    scaling: Scaling,
    nan: NanPolicy,
) -> NDArray[np.integer[Any]]:
    """clamp(round(x / s) + z) as `dtype`, in the floating type of `x`.

    `scales` and `zero_points` are scalars, arrays of one entry, or one entry per index of `axis`.  Half away with
    division is TVM and TFLite QUANTIZE, half even with division ONNX QuantizeLinear, half even with a reciprocal
    PyTorch; which of the reciprocals says `scaling`, see `scale_factors`.  Infinities saturate, NaN follows `nan`.
    """
    lo, hi = quantized_range(dtype)
    factor = along_axis(scale_factors(scales, scaling, x.dtype.type), x.ndim, axis)
    zero_point = along_axis(np.asarray(zero_points, dtype=np.int64), x.ndim, axis)
    with np.errstate(all="ignore"):
        ratio = x / factor if scaling is Scaling.DIVIDE else x * factor
    is_nan = np.isnan(ratio)
    rounded = round_f32(np.where(is_nan, 0, ratio).astype(x.dtype), rounding)
    quantized = saturate_f32(rounded, lo - zero_point, hi - zero_point) + zero_point
    return np.where(is_nan, nan_value(nan, zero_point, lo, hi), quantized).astype(dtype)


def dequantize_array(
    x: NDArray[np.integer[Any]], scales: ArrayLike, zero_points: ArrayLike, axis: int
) -> NDArray[np.float32]:
    """float32(x - z) * float32(s); parameters as in `quantize_array` (ONNX DequantizeLinear, TVM, TFLite)."""
    zero_point = along_axis(np.asarray(zero_points, dtype=np.int64), x.ndim, axis)
    scale = along_axis(np.asarray(scales, dtype=np.float32), x.ndim, axis)
    return (x.astype(np.int64) - zero_point).astype(np.float32) * scale


def along_axis(parameter: NDArray[Any], rank: int, axis: int) -> NDArray[Any]:
    """A per-axis parameter shaped to broadcast against a tensor of `rank`; one entry acts as a scalar."""
    if parameter.size == 1:
        return parameter.reshape(())
    shape = [1] * rank
    shape[axis] = parameter.size
    return parameter.reshape(shape)
