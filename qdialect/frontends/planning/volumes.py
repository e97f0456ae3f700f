"""Windows over volumes as windows over images: their taps along the depth become channels, or rows, of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import PadOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.budget import Budget
from qdialect.frontends.common import Array, Shape, UnsupportedError
from qdialect.frontends.planning.emitter import Emitter
from qdialect.frontends.planning.movement import Movement
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.window import Window
from qdialect.frontends.slices import check_indices, gather

RANK = 5
"""Of volumes, [N, C, D, H, W]."""


@dataclass(frozen=True)
class DepthTaps(Movement):
    """What each window along the depth reads, as channels of an image: [N * OD, groups * KD * C / groups, H, W]."""

    window: Window
    groups: int

    @classmethod
    def of(cls, before: Shape, window: Window, groups: int, budget: Budget) -> Self:
        """Of volumes of shape `before`; raises `UnsupportedError` where there are too many taps to be listed."""
        check_indices(window.output[0] * window.kernel[0], budget)
        batch, channels, _, *size = before
        return cls((batch * window.output[0], window.kernel[0] * channels, *size), window, groups)

    @property
    def wants_channels_last(self) -> bool:
        return True

    @property
    def is_known(self) -> bool:
        return False

    def array(self, array: Array) -> Array:
        raise UnsupportedError("volumes must not be known when the model is read")

    def emit(self, emitter: Emitter, value: ir.Value, to: QuantizedTensorType | None) -> ir.Value:
        padded = _padded_along(emitter, value, self.window, range(1), to)
        taps = _taps_along(emitter, padded, self.window, 0)
        batch, count, kernel, height, width, channels = shape_of(taps.type)
        apart = emitter.reshape(taps, (batch, count, kernel, height, width, self.groups, channels // self.groups))
        beside = apart if kernel == 1 else emitter.transpose(apart, (0, 1, 3, 4, 5, 2, 6))
        return emitter.reshape(beside, (batch * count, height, width, kernel * channels))


def taps_of_depth(weight: Array) -> Array:
    """Weights [O, KD, KH, KW, C / groups] as those of the images: [O, KH, KW, KD * C / groups]."""
    last = np.moveaxis(weight, 1, 3)
    return np.ascontiguousarray(last.reshape(*last.shape[:3], -1))


def rows_of_windows(emitter: Emitter, value: ir.Value, window: Window) -> tuple[ir.Value, Window]:
    """f32 images [N * OD, OH * KD * KH, W, C] of volumes NDHWC, and windows over them that read in the same order."""
    padded = _padded_along(emitter, value, window, range(3), None)
    slices = _taps_along(emitter, padded, window, 0)
    batch, depth, taps, _, width, channels = shape_of(slices.type)
    rows = gather(emitter, slices, 3, _positions(window, 1))
    (height, lines), order = (window.output[1], window.kernel[1]), (0, 1, 3, 2, 4, 5, 6)
    beside = emitter.transpose(emitter.reshape(rows, (batch, depth, taps, height, lines, width, channels)), order)
    image = emitter.reshape(beside, (batch * depth, height * taps * lines, width, channels))
    kernel, strides = (taps * lines, window.kernel[2]), (taps * lines, window.strides[2])
    return image, Window(kernel, strides, (1, window.dilation[2]), (0, 0), (0, 0), window.output[1:])


def _padded_along(
    emitter: Emitter, value: ir.Value, window: Window, dimensions: range, to: QuantizedTensorType | None
) -> ir.Value:
    """NDHWC data with the window's padding of these `dimensions`, which holds zeros."""
    low, high = ([0] * RANK for _ in range(2))
    for i in dimensions:
        low[1 + i], high[1 + i] = window.before[i], window.after[i]
    if not any(low) and not any(high):
        return value
    zero = 0 if to is None else to.quantize_scalar(0.0)
    return emitter.build(PadOp, value, element=element_of(value.type), low=tuple(low), high=tuple(high), value=zero)


def _taps_along(emitter: Emitter, value: ir.Value, window: Window, dimension: int) -> ir.Value:
    """NDHWC data with a dimension of windows and one of their taps in the stead of dimension 1 + `dimension`."""
    axis = 1 + dimension
    shape = shape_of(value.type)
    found = gather(emitter, value, axis, _positions(window, dimension))
    apart = window.output[dimension], window.kernel[dimension]
    return emitter.reshape(found, (*shape[:axis], *apart, *shape[axis + 1 :]))


def _positions(window: Window, dimension: int) -> list[int]:
    """Where each tap of each window stands along a padded dimension."""
    stride, dilation = window.strides[dimension], window.dilation[dimension]
    windows, taps = range(window.output[dimension]), range(window.kernel[dimension])
    return [index * stride + tap * dilation for index in windows for tap in taps]
