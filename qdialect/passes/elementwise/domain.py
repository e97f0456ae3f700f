"""Which numbers the source of an element-wise graph can have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect import AnyContraction, MatMulOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import range_of, shape_of
from qdialect.passes.pattern import MatchFailure
from qdialect.quant_math import IntArray, accumulator_range

Range = tuple[IntArray, IntArray]


def numbers_of(source: ir.Value, contraction: AnyContraction | None) -> Range | MatchFailure:
    """The minimum and the maximum number of each channel of `source`, int64[C], or int64[1] for all channels.

    Those of a contraction are its accumulators for any data; others have the range of their type.
    """
    if contraction is None:
        low, high = range_of(source.type)
        return np.array([low], np.int64), np.array([high], np.int64)
    channels = shape_of(source.type)[-1]
    taps = _taps(contraction, channels)
    bias = np.zeros(channels, np.int64) if contraction.bias is None else constant_value(contraction.bias)
    if taps is None or bias is None:
        return MatchFailure(f"needs a contraction with a constant {'weight' if taps is None else 'bias'}")
    lowest, highest = range_of(contraction.data.type)
    point = contraction.input_zero_point
    low, high = accumulator_range(taps, bias, (lowest - point, highest - point))
    if low.min() < -(2**31) or high.max() >= 2**31:
        return MatchFailure(f"needs accumulators that 32 bits hold, but they may be in [{low.min()}, {high.max()}]")
    return low, high


def _taps(contraction: AnyContraction, channels: int) -> NDArray[np.int64] | None:
    """The weights less their zero points, [C, K]; None where they are not constant."""
    weight = constant_value(contraction.weight)
    if weight is None:
        return None
    if not isinstance(contraction, MatMulOp):
        points = np.asarray(contraction.weight_zero_points, np.int64)[:, None]
        return weight.reshape(channels, -1).astype(np.int64) - points
    # Matrices beside each other have one column of each for a channel: the widest range over all of them.
    taps = weight.astype(np.int64) - np.asarray(contraction.weight_zero_points, np.int64)
    columns = np.moveaxis(taps, -1, 0).reshape(channels, -1, weight.shape[-2])
    above, below = np.maximum(columns, 0).sum(axis=2).max(axis=1), np.minimum(columns, 0).sum(axis=2).min(axis=1)
    return np.stack([above, below], axis=1)
