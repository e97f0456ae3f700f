"""Exact products of matrices of 8-bit quantized values into int32 accumulators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def dense_accumulate(
    data: NDArray[np.integer[Any]],
    weight: NDArray[np.integer[Any]],
    input_zero_point: int,
    weight_zero_points: Sequence[int],
    bias: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """acc[..., o] = bias[o] + sum over k of (data[..., k] - z_x) * (weight[o, k] - z_w[o]).

    `data` is [..., K], `weight` [O, K], `weight_zero_points` has one or O entries, `bias` is int32[O]; the result is
    int32[..., O], wrapping modulo 2^32.  Sums are exact in float64.
    """
    points = (data.astype(np.int32) - input_zero_point).astype(np.float64)
    zero_points = np.asarray(weight_zero_points, dtype=np.int32).reshape(-1, 1)
    matrix = (weight.astype(np.int32) - zero_points).astype(np.float64)
    acc = (points @ matrix.T).astype(np.int64)
    return (acc if bias is None else acc + bias).astype(np.int32)


def matmul_accumulate(
    data: NDArray[np.integer[Any]],
    weight: NDArray[np.integer[Any]],
    input_zero_point: int,
    weight_zero_points: Sequence[int],
    bias: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """acc[..., m, n] = bias[n] + sum over k of (data[..., m, k] - z_x) * (weight[..., k, n] - z_w[n]).

    `data` is [..., M, K], `weight` [..., K, N], their leading dimensions broadcast; `weight_zero_points` has one or N
    entries, `bias` is int32[N]; the result wraps modulo 2^32.  Sums are exact in float64.
    """
    points = (data.astype(np.int32) - input_zero_point).astype(np.float64)
    matrix = (weight.astype(np.int32) - np.asarray(weight_zero_points, dtype=np.int32)).astype(np.float64)
    acc = (points @ matrix).astype(np.int64)
    return (acc if bias is None else acc + bias).astype(np.int32)
