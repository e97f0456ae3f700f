"""Reductions over axes other than means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.quant_math import (
    IntArray,
    Multiplier,
    QuantizedArray,
    QuantParams,
    Rounding,
    doubling_high_multiply,
    real_multiplier,
    requantize,
    requantize_parameters,
    rounding_shift_right,
)
from qdialect.quant_math.inverse_root import inverse_root


def arg_max(values: QuantizedArray, axis: int, keep_dims: bool, last: bool) -> IntArray:
    """Index along `axis` of the largest value, int64; of equal ones the first, or the last with `last`.

    TFLite ARG_MAX takes the first, ONNX ArgMax the one that `select_last_index` names.
    """
    if not last:
        return np.argmax(values, axis=axis, keepdims=keep_dims)
    return values.shape[axis] - 1 - np.argmax(np.flip(values, axis), axis=axis, keepdims=keep_dims)


def arg_min(values: QuantizedArray, axis: int, keep_dims: bool, last: bool) -> IntArray:
    """`arg_max` of the quantized values in reverse order."""
    return arg_max(-values.astype(np.int64), axis, keep_dims, last)


def sum_over(
    values: QuantizedArray,
    axes: Sequence[int],
    keep_dims: bool,
    source: QuantParams,
    output: QuantParams,
    lo: int,
    hi: int,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """requantize(sum of (x - z_x) over `axes`) with M = s_x / s_y, clamped to [lo, hi], int64.

    With `fixed32_double` and `f64` this is TFLite's reference SUM of unsigned quantized values.
    """
    total = (values.astype(np.int64) - source.zero_point).sum(axis=tuple(axes), keepdims=keep_dims)
    params = requantize_parameters(rounding, real_multiplier(source.scale, [1.0], output.scale, multiplier))
    return requantize(total, params, output.zero_point, lo, hi, rounding)


def l2_normalize(values: QuantizedArray, zero_point: int) -> IntArray:
    """TFLite L2_NORMALIZATION along the last axis: 128 * (x - z_x) times the fixed-point 1 / sqrt(sum of squares).

    Both roundings of the product are gemmlowp's.  The factor 128 comes before them for unsigned quantized values, and
    is part of the multiplier's exponent for signed ones.  Quantized values of scale 1/128, around 128 or 0, int64.
    """
    info = np.iinfo(values.dtype.name)
    offsets = values.astype(np.int64) - zero_point
    totals = (offsets**2).sum(axis=-1, keepdims=True)
    roots = [inverse_root(int(total)) for total in totals.ravel()]
    q, shift = (np.array(part, dtype=np.int64).reshape(totals.shape) for part in zip(*roots, strict=True))
    is_signed = info.min < 0
    left, right = (np.maximum(7 - shift, 0), np.maximum(shift - 7, 0)) if is_signed else (7, shift)
    scaled = rounding_shift_right(doubling_high_multiply(offsets << left, q), right)
    return np.clip(scaled + (0 if is_signed else 128), info.min, info.max)
