"""Weights of convolutions and matrix products, known or given at run time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.planning.emitter import Emitter, Value, channels_last
from qdialect.frontends.planning.tensors import EIGHT_BIT, Floats, Integers, Quantized

LARGEST_BIAS = 2**31 - 1
"""In units of the accumulator."""


@dataclass(frozen=True)
class Weight:
    """Constant weights with the output channels first, scales and zero points by tensor or by output channel."""

    values: Array
    scales: Floats
    zero_points: Integers

    @property
    def shape(self) -> Shape:
        """Its extents."""
        return self.values.shape

    def emit(self, emitter: Emitter, shape: Shape) -> ir.Value:
        """The weights with other extents of as many elements."""
        return emitter.constant(self.values.reshape(shape))


@dataclass(frozen=True)
class RunTimeWeight:
    """Weights that are computed or given at run time, in the model's order: output channels, input channels, window."""

    value: Value
    scales: Floats
    zero_points: Integers

    @property
    def shape(self) -> Shape:
        """Its extents as those of `Weight`, with the input channels last."""
        return tuple(self.value.shape[axis] for axis in channels_last(len(self.value.shape)))

    def emit(self, emitter: Emitter, shape: Shape) -> ir.Value:
        """As `Weight.emit`."""
        return emitter.reshape(emitter.last(self.value), shape)


def run_time_weight(source: Quantized, rank: int) -> RunTimeWeight:
    """Weights of `rank` dimensions, by one scale or one for each output channel; raises as `ordered_weight`."""
    _check(source, rank, 0)
    return RunTimeWeight(source.values, source.scales, source.zero_points)


def ordered_weight(source: Quantized, order: tuple[int, ...], channel_axis: int) -> Weight:
    """Constant weights with their dimensions in `order`; scales by channel lie along `channel_axis` of the model's.

    Raises `UnsupportedError` where no contraction can read them.
    """
    values = source.values.data
    require(values is not None, "weight must be constant")
    assert values is not None
    _check(source, len(order), channel_axis)
    return Weight(np.ascontiguousarray(values.transpose(order)), source.scales, source.zero_points)


def _check(source: Quantized, rank: int, channel_axis: int) -> None:
    shape = source.shape
    require(source.values.element in EIGHT_BIT, f"weight must be i8 or ui8, but got {source.values.element}")
    require(len(shape) == rank, f"weight must have {rank} dimensions, but got {len(shape)}")
    require(min(shape) >= 1, f"weight shape must not be empty, but got {list(shape)}")
    if len(source.scales) > 1:
        require(source.axis == channel_axis, f"weight scales must lie along axis {channel_axis}, but got {source.axis}")
