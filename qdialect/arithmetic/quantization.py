"""Says how quantized values stand for f32 values: scales, zero points, q = round(r / s) + z and r = (q - z) * s."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from qdialect.arithmetic.choices import FloatRounding, NanPolicy, Scaling

# A scale as the arithmetic sees it: the divisor or factor of f32 values, and when two scales are one.
#
# A scale is a double wherever it is written down.  Runtimes narrow it to float32 at different moments, and the last bit
# of the factor decides a tie: with s = 0.03, ``float32(1 / s)`` and ``1 / float32(s)`` differ.

FloatArray = NDArray[np.floating[Any]]


def scale_factors(scales: ArrayLike, scaling: Scaling, like: type[np.float32 | np.float64] = np.float32) -> FloatArray:
    """The divisor of ``divide`` and the factors of the other values of `scaling`, in the floating type `like`.

    * ``divide``: like(s) (ONNX QuantizeLinear, TFLite QUANTIZE).
    * ``reciprocal``: like(1 / s) with the division in float64 (PyTorch's ``quantized_decomposed`` ops).
    * ``reciprocal_f32``: 1 / like(s) in `like` (PyTorch's quantized tensors with FBGEMM, oneDNN, TFLite's tables).

    Factors beyond the range of `like` are infinite or zero, without a warning.
    """
    exact = np.asarray(scales, dtype=np.float64)
    with np.errstate(all="ignore"):
        if scaling is Scaling.RECIPROCAL:
            return (1 / exact).astype(like)
        narrow = exact.astype(like)
        return narrow if scaling is Scaling.DIVIDE else (like(1) / narrow).astype(like)


def same_scale(first: ArrayLike, second: ArrayLike) -> bool:
    """Whether two scales, or those of as many channels, are the same float32 numbers.

    Dequantization reads no more of a scale than that: quantized values at either scale stand for the same float32
    numbers.  Arithmetic that reads doubles has to compare them as doubles.
    """
    return np.array_equal(np.asarray(first, dtype=np.float32), np.asarray(second, dtype=np.float32))


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
    PyTorch; `scaling` chooses the reciprocal, see `scale_factors`.  Infinities saturate, NaN follows `nan`.
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


QuantizedArray = NDArray[np.integer[Any]]
"""Quantized values, of 8 bits unless a function states otherwise."""


@dataclass(frozen=True)
class QuantParams:
    """Per-tensor quantization: the quantized value q stands for ``scale * (q - zero_point)``."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class BinaryQuantization:
    """The quantizations of a function of two tensors: operands, result, and the bounds of the result."""

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
