"""Pooling windows and means over quantized values, NHWC."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qdialect.quant_math import (
    Division,
    IntArray,
    Multiplier,
    QuantizedArray,
    Rounding,
    folded_count_multiplier,
    multiply_by_quantized_multiplier,
    real_multiplier,
    requantize,
    requantize_parameters,
)
from qdialect.quant_math.convolution import output_size

_Padding = tuple[int, int, int, int]


def avg_pool2d(
    data: QuantizedArray,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: _Padding,
    division: Division,
    lo: int,
    hi: int,
    *,
    count_include_pad: bool = False,
    zero_point: int = 0,
) -> IntArray:
    """Mean of the raw quantized values of each window, clamped to [lo, hi]; [N, H, W, C] to int64[N, OH, OW, C].

    Input and result have equal parameters, so quantized values average as f32 values do.  Padding (top, left,
    bottom, right) counts only with `count_include_pad`, and then holds `zero_point`.

    `half_away_centered` is TOSA's AVG_POOL2D, which multiplies t, the sum of n quantized values less their
    zero point, by a reciprocal: ``(t * q + 2^(29 + k)) >> (30 + k)`` with k = ceil(log2 n) and
    q = floor((2^30 + 1) * 2^k / n).  As 2^k >= n, q * n lies above 2^(30 + k), by 2^k at most: the product is
    t / n * (1 + d) with 0 < d <= 2^-30.  That moves ties away from zero and, for |t| <= 255 * n and n <= 2^20, nothing
    else: other sums are 1 / 2n from a tie.
    """
    center = zero_point if division is Division.HALF_AWAY_CENTERED else 0
    fill = zero_point if count_include_pad else 0
    total = _windows(data.astype(np.int64), kernel, strides, padding, fill).sum(axis=0)
    inside = np.ones((1, *data.shape[1:3], 1), dtype=np.int64)
    count = _windows(inside, kernel, strides, padding, 1 if count_include_pad else 0).sum(axis=0)
    total -= center * count
    nudge = 0 if division is Division.TRUNCATE else count // 2
    magnitude = (np.abs(total) + nudge) // count
    return np.clip(np.sign(total) * magnitude + center, lo, hi)


def max_pool2d(
    data: QuantizedArray,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: _Padding,
    lo: int,
    hi: int,
) -> IntArray:
    """Largest value of each window without its padding, clamped to [lo, hi]; [N, H, W, C] to int64[N, OH, OW, C]."""
    smallest = int(np.iinfo(np.int64).min)
    return np.clip(_windows(data.astype(np.int64), kernel, strides, padding, smallest).max(axis=0), lo, hi)


def _windows(
    data: IntArray, kernel: tuple[int, int], strides: tuple[int, int], padding: _Padding, pad_value: int
) -> IntArray:
    """[KH * KW, N, OH, OW, C]: for each kernel position, the elements it meets."""
    top, left, bottom, right = padding
    out_h = output_size(data.shape[1], kernel[0], strides[0], top + bottom, 1)
    out_w = output_size(data.shape[2], kernel[1], strides[1], left + right, 1)
    padded = np.pad(data, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=pad_value)
    rows, columns = (out_h - 1) * strides[0] + 1, (out_w - 1) * strides[1] + 1
    return np.stack(
        [
            padded[:, y : y + rows : strides[0], x : x + columns : strides[1]]
            for y in range(kernel[0])
            for x in range(kernel[1])
        ]
    )


def mean(
    data: QuantizedArray,
    axes: Sequence[int],
    keep_dims: bool,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    lo: int,
    hi: int,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """Mean over `axes`, rescaled and clamped to [lo, hi], int64.

    With n elements per mean: the sum of (x - z_x) times s_x / (n * s_y), plus z_y.  Float rounding modes round that
    multiplier.  Fixed-point rounding modes start from the quantized (q, e) of s_x / s_y and divide q by n, see
    `folded_count_multiplier`; with `fixed32_double` and `f64` this is TFLite's reference MEAN.
    """
    axis = tuple(axes)
    total = (data.astype(np.int64) - input_zero_point).sum(axis=axis, keepdims=keep_dims)
    count = math.prod(data.shape[a] for a in axis)
    f32 = real_multiplier(input_scale, [1.0], output_scale, multiplier)
    if not rounding.is_fixed:
        return requantize(total, requantize_parameters(rounding, f32 / count), output_zero_point, lo, hi, rounding)
    q, e = folded_count_multiplier(float(f32[0]), count)
    return np.clip(multiply_by_quantized_multiplier(total, q, e, rounding) + output_zero_point, lo, hi)
