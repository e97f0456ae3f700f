"""Reductions over axes other than means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math import IntArray

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
