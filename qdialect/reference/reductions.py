"""Reductions over axes other than means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math import IntArray, Multiplier, Rounding, real_multiplier, requantize, requantize_parameters
from qdialect.reference.elementwise import Affine

_Codes = NDArray[np.integer[Any]]


def arg_max(codes: _Codes, axis: int, keep_dims: bool, last: bool) -> IntArray:
    """Index along `axis` of the largest code, int64; of equal ones the first, or the last with `last`.

    TFLite ARG_MAX takes the first, ONNX ArgMax the one that `select_last_index` names.
    """
    if not last:
        return np.argmax(codes, axis=axis, keepdims=keep_dims)
    return codes.shape[axis] - 1 - np.argmax(np.flip(codes, axis), axis=axis, keepdims=keep_dims)


def arg_min(codes: _Codes, axis: int, keep_dims: bool, last: bool) -> IntArray:
    """`arg_max` of the codes in reverse order."""
    return arg_max(-codes.astype(np.int64), axis, keep_dims, last)


def sum_over(
    codes: _Codes,
    axes: Sequence[int],
    keep_dims: bool,
    source: Affine,
    output: Affine,
    lo: int,
    hi: int,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """requantize(sum of (x - z_x) over `axes`) with M = s_x / s_y, clamped to [lo, hi], int64.

    With `fixed32_double` and `f64` this is TFLite's reference SUM of unsigned codes.
    """
    total = (codes.astype(np.int64) - source.zero_point).sum(axis=tuple(axes), keepdims=keep_dims)
    params = requantize_parameters(rounding, real_multiplier(source.scale, [1.0], output.scale, multiplier))
    return requantize(total, params, output.zero_point, lo, hi, rounding)
