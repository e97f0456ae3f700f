"""Sums of windows over f32 images and volumes whose terms are added one after the other, in row-major order."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32Conv2DOp, PadOp
from qdialect.frontends.planning.convolution import image
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.volumes import RANK, rows_of_windows
from qdialect.frontends.planning.window import Window


def window_sums(emitter: Emitter, values: Value, window: Window) -> ir.Value:
    """The sums [N, ..., C] of the windows over f32 values [N, C, ...]; what lies outside counts as 0."""
    channels = values.shape[1]
    data, flat = _padded(emitter, values, window)
    ones = emitter.constant(np.ones((channels, *flat.kernel, 1), np.float32))
    steps = {"strides": flat.strides, "dilation": flat.dilation}
    sums = emitter.build(F32Conv2DOp, data, ones, element="f32", groups=channels, **steps)
    return emitter.reshape(sums, (values.shape[0], *window.output, channels))


def _padded(emitter: Emitter, values: Value, window: Window) -> tuple[ir.Value, Window]:
    """Padded images, and the windows over them."""
    if len(values.shape) == RANK:
        return rows_of_windows(emitter, emitter.last(values), window)
    flat, data = window.two_dimensional(), image(emitter, values)
    if not any(flat.padding):
        return data, flat
    low, high = (0, *flat.before, 0), (0, *flat.after, 0)
    return emitter.build(PadOp, data, element="f32", low=low, high=high, value=0), flat
