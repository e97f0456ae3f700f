"""Explicit padding of convolutions and pools."""

from __future__ import annotations

import tflite

from qdialect.frontends.common import require

Padding = tuple[int, int, int, int]


def explicit_padding(
    padding: int, size: tuple[int, int], window: tuple[int, int], strides: tuple[int, int], dilation: tuple[int, int]
) -> Padding:
    """(top, left, bottom, right) of a padding mode of the schema (TFLite ComputePaddingHeightWidth).

    SAME yields ceil(size / stride) windows; of an odd number of added elements the larger half comes last.
    """
    require(min(*strides, *dilation, *window) >= 1, "strides, dilation and window must be at least 1")
    if padding == tflite.Padding.VALID:
        return 0, 0, 0, 0
    require(padding == tflite.Padding.SAME, f"padding mode {padding} is not supported")
    top, bottom = _same(size[0], (window[0] - 1) * dilation[0] + 1, strides[0])
    left, right = _same(size[1], (window[1] - 1) * dilation[1] + 1, strides[1])
    return top, left, bottom, right


def _same(size: int, kernel_extent: int, stride: int) -> tuple[int, int]:
    added = max((-(-size // stride) - 1) * stride + kernel_extent - size, 0)
    return added // 2, added - added // 2
