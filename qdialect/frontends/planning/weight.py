"""Constant weights of convolutions and matrix products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect.frontends.common import Array, require
from qdialect.frontends.planning.tensors import EIGHT_BIT, CodedTensor, Floats, Integers

LARGEST_BIAS = 2**31 - 1
"""Of accumulator steps."""


@dataclass(frozen=True)
class Weight:
    """Constant weights with the output channels first, scales and zero points by tensor or by output channel."""

    codes: Array
    scales: Floats
    zero_points: Integers


def ordered_weight(source: CodedTensor, order: tuple[int, ...], channel_axis: int) -> Weight:
    """Constant weights with their dimensions in `order`; scales by channel lie along `channel_axis` of the model's.

    Raises `UnsupportedError` where no contraction can read them.
    """
    codes = source.codes.data
    require(codes is not None, "weight must be constant")
    assert codes is not None
    require(source.codes.element in EIGHT_BIT, f"weight must be i8 or ui8, but got {source.codes.element}")
    require(len(order) == codes.ndim, f"weight must have {len(order)} dimensions, but got {codes.ndim}")
    require(min(codes.shape) >= 1, f"weight shape must not be empty, but got {list(codes.shape)}")
    if len(source.scales) > 1:
        require(source.axis == channel_axis, f"weight scales must lie along axis {channel_axis}, but got {source.axis}")
    same = len(set(source.zero_points)) == 1
    zero_points = source.zero_points[:1] if same else source.zero_points
    return Weight(np.ascontiguousarray(codes.transpose(order)), source.scales, zero_points)
