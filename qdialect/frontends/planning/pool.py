"""Pools as ops: maxima and sums of windows over 8-bit images, and f32 sums of windows in row-major order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.dialect import Conv2DOp, F32Conv2DOp, GatherOp, MaxPool2DOp
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.frontends.building.checks import require
from qdialect.frontends.building.op_builder import OpBuilder
from qdialect.frontends.building.slices import framed
from qdialect.frontends.building.windows import Window
from qdialect.frontends.planning.convolution import image, rows_of_windows
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, Quantized, QuantizedTensorType
from qdialect.ir._mlir import ir


@dataclass(frozen=True, eq=False)
class Largest(F32Tensor):
    """The largest f32 values of windows: once they are quantized values, those are compared."""

    source: F32Tensor
    window: Window

    def nan_of(self, plan: Plan) -> Sequence[F32Tensor]:
        return (self.source,)

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        return largest(plan, name, self.source.quantized(plan, name, to), self.window, self.shape)


def largest(plan: Plan, name: str, source: Value, window: Window, shape: tuple[int, ...]) -> Value:
    """The largest 8-bit value of each window, in the result's `shape`."""
    element = source.element
    require(element in EIGHT_BIT, f"input must be i8 or ui8, but got {element}")

    def emit(emitter: Emitter) -> Emitted:
        pooled = _pooled(emitter, image_of(emitter, source, len(window.kernel)), window.two_dimensional())
        if len(window.kernel) == 3:
            slices = emitter.reshape(pooled, (shape[0], source.shape[2], math.prod(shape[3:]), shape[1]))
            pooled = _pooled(emitter, slices, window.along_depth())
        return emitter.reshape(pooled, (shape[0], *shape[2:], shape[1])), True

    return plan.compute(name, shape, element, emit)


def _pooled(emitter: Emitter, data: ir.Value, window: Window) -> ir.Value:
    """The largest values of windows over images NHWC."""
    element = element_of(data.type)
    low, high = ELEMENT_RANGES[element]
    taps, undilated = _without_dilation(emitter, data, window, low)
    how = {"kernel": undilated.kernel, "strides": undilated.strides, "padding": undilated.padding}
    return emitter.build(MaxPool2DOp, taps, element=element, **how, output_min=low, output_max=high)


def _without_dilation(emitter: Emitter, data: ir.Value, window: Window, lowest: int) -> tuple[ir.Value, Window]:
    """The elements of dilated windows side by side, and the windows over them; `lowest` never wins."""
    if set(window.dilation) == {1}:
        return data, window
    element, zeros = element_of(data.type), (0, 0)
    data = framed(emitter, data, *window.border, fill=lowest)
    for i in range(2):
        starts = range(0, window.output[i] * window.strides[i], window.strides[i])
        indices = tuple(start + k * window.dilation[i] for start in starts for k in range(window.kernel[i]))
        data = emitter.build(GatherOp, data, element=element, axis=i + 1, indices=indices)
    return data, Window(window.kernel, window.kernel, (1, 1), zeros, zeros, window.output)


def window_sums(emitter: Emitter, source: Quantized, window: Window, share: float) -> ir.Value:
    """i32 sums of ``(q - z) * share``, by a convolution with ones; the padding holds the zero point z."""
    flat, channels, before = window.two_dimensional(), source.shape[1], source.parameters
    image = image_of(emitter, source.values, len(window.kernel))
    ones = emitter.constant(np.broadcast_to(np.int8(1), (channels, *flat.kernel, 1)))
    how = {"strides": flat.strides, "padding": flat.padding, "groups": channels}
    scales = {"input_scale": before.scale, "input_zero_point": before.zero_point, "weight_scales": (share,)}
    return emitter.build(Conv2DOp, image, ones, element="i32", **how, **scales)


def image_of(emitter: Emitter, values: Value, rank: int) -> ir.Value:
    """Channels-first data as images NHWC of windows over `rank` dimensions.

    A window over one dimension has images of height 1, of all that follows the channels; one over three has slices.
    """
    if rank == 3:
        return image(emitter, values)
    batch, channels, *size = values.shape
    height, width = (1, math.prod(size)) if len(size) != 2 else size
    return emitter.reshape(emitter.last(values), (batch, height, width, channels))


# Sums of windows over f32 images and volumes whose terms are added one after the other, in row-major order.


def sums_of_windows(emitter: OpBuilder, data: ir.Value, window: Window) -> ir.Value:
    """The sums [N, ..., C] of the windows over f32 data [N, ..., C]; elements outside count as 0."""
    batch, *size, channels = shape_of(data.type)
    if len(window.kernel) == 3:
        images, flat = rows_of_windows(emitter, data, window)
    else:
        flat = window.two_dimensional()
        height, width = (1, *size)[-2:]
        images = framed(emitter, emitter.reshape(data, (batch, height, width, channels)), *flat.border)
    ones = emitter.constant(np.ones((channels, *flat.kernel, 1), np.float32))
    steps = {"strides": flat.strides, "dilation": flat.dilation}
    sums = emitter.build(F32Conv2DOp, images, ones, element="f32", groups=channels, **steps)
    return emitter.reshape(sums, (batch, *window.output, channels))
