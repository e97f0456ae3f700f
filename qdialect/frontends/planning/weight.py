"""Constant weights of convolutions and matrix products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect.frontends.common import Array, require
from qdialect.frontends.planning.tensors import EIGHT_BIT, Floats, Integers, Quantized

LARGEST_BIAS = 2**31 - 1
"""In units of the accumulator."""


@dataclass(frozen=True)
class Weight:
    """Constant weights with the output channels first, scales and zero points by tensor or by output channel."""

    values: Array
    scales: Floats
    zero_points: Integers


def ordered_weight(source: Quantized, order: tuple[int, ...], channel_axis: int) -> Weight:
    """Constant weights with their dimensions in `order`; scales by channel lie along `channel_axis` of the model's.

    Raises `UnsupportedError` where no contraction can read them.
    """
    values = source.values.data
    require(values is not None, "weight must be constant")
    assert values is not None
    require(source.values.element in EIGHT_BIT, f"weight must be i8 or ui8, but got {source.values.element}")
    require(len(order) == values.ndim, f"weight must have {len(order)} dimensions, but got {values.ndim}")
    require(min(values.shape) >= 1, f"weight shape must not be empty, but got {list(values.shape)}")
    if len(source.scales) > 1:
        require(source.axis == channel_axis, f"weight scales must lie along axis {channel_axis}, but got {source.axis}")
    return Weight(np.ascontiguousarray(values.transpose(order)), source.scales, source.zero_points)
