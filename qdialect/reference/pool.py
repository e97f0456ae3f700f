"""Pooling windows and means over codes, NHWC."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math import (
    IntArray,
    Multiplier,
    Rounding,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    real_multiplier,
    requantize,
    requantize_parameters,
)
from qdialect.reference.convolution import output_size

_Codes = NDArray[np.integer[Any]]
_Padding = tuple[int, int, int, int]


class Division(StrEnum):
    """How the sum of a window is divided by the number of its elements."""

    HALF_AWAY = "half_away"
    """Ties away from zero: TFLite."""
    TRUNCATE = "truncate"
    """Towards zero: TVM."""


class MeanArithmetic(StrEnum):
    """How a mean is rescaled to the output's parameters."""

    FOLDED_COUNT = "folded_count"
    """The count divides the quantized multiplier, truncating: TFLite."""
    REQUANTIZE = "requantize"
    """The count divides the real multiplier."""


def avg_pool2d(
    data: _Codes,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: _Padding,
    division: Division,
    lo: int,
    hi: int,
    *,
    count_include_pad: bool = False,
    pad_value: int = 0,
) -> IntArray:
    """Mean of the raw codes of each window, clamped to [lo, hi]; [N, H, W, C] to int64[N, OH, OW, C].

    Equal input and output parameters are assumed, so codes average as reals do.  Padding (top, left, bottom, right)
    counts only with `count_include_pad`, and then holds `pad_value`.
    """
    total = _windows(data.astype(np.int64), kernel, strides, padding, pad_value if count_include_pad else 0).sum(axis=0)
    inside = np.ones((1, *data.shape[1:3], 1), dtype=np.int64)
    count = _windows(inside, kernel, strides, padding, 1 if count_include_pad else 0).sum(axis=0)
    nudge = count // 2 if division is Division.HALF_AWAY else 0
    magnitude = (np.abs(total) + nudge) // count
    return np.clip(np.sign(total) * magnitude, lo, hi)


def max_pool2d(
    data: _Codes,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: _Padding,
    lo: int,
    hi: int,
) -> IntArray:
    """Largest code of each window, padding never wins, clamped to [lo, hi]; [N, H, W, C] to int64[N, OH, OW, C]."""
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
    data: _Codes,
    axes: Sequence[int],
    keep_dims: bool,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    lo: int,
    hi: int,
    arithmetic: MeanArithmetic,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """Mean over `axes`, rescaled and clamped to [lo, hi], int64.

    With n elements per mean, the sum of (x - z_x) times s_x / (n * s_y), plus z_y.  `requantize` rounds that real
    multiplier as `rounding` wants it.  `folded_count` starts from the quantized (q, e) of s_x / s_y and divides q by n,
    see `folded_count_multiplier`; it needs a fixed-point `rounding` (TFLite: `fixed32_double` with `f64`).

    Raises:
        ValueError: `folded_count` with a float flavour.
    """
    axis = tuple(axes)
    total = (data.astype(np.int64) - input_zero_point).sum(axis=axis, keepdims=keep_dims)
    count = int(np.prod([data.shape[a] for a in axis]))
    real = real_multiplier(input_scale, [1.0], output_scale, multiplier)
    if arithmetic is MeanArithmetic.REQUANTIZE:
        params = requantize_parameters(rounding, real / count)
        return requantize(total, params, output_zero_point, lo, hi, rounding)
    q, e = folded_count_multiplier(float(real[0]), count)
    return np.clip(multiply_by_quantized_multiplier(total, q, e, rounding) + output_zero_point, lo, hi)


def folded_count_multiplier(m: float, count: int) -> tuple[int, int]:
    """(q, e) of m / count as TFLite's MEAN forms it: q shifted up by floor(log2(count)), divided by count, truncated.

    The shift keeps q at 30 bits or more.  It is at most 32 and never takes e below -31.
    """
    q, e = quantize_multiplier(m)
    shift = min(count.bit_length() - 1, 32, 31 + e)
    return (q << shift) // count, e - shift
