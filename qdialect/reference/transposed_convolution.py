"""Exact transposed 2-D convolution of 8-bit quantized values into int32 accumulators: NHWC data, OHWI weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math import QuantizedArray


def conv_transpose2d_accumulate(
    data: QuantizedArray,
    weight: QuantizedArray,
    input_zero_point: int,
    weight_zero_points: Sequence[int],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int],
    output_padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
    bias: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """acc[n, y, x, o] = bias[o] + sum of (data[n, v, u, c] - z_x) * (weight[o, i, j, c] - z_w[o]).

    The sum is over all v, u, i, j with v*s + i*d - top = y and u*s + j*d - left = x: the gradient of a convolution with
    respect to its data.

    Args:
        data: 8-bit quantized values [N, H, W, C].
        weight: 8-bit quantized values [O, KH, KW, C / groups].
        input_zero_point: z_x.
        weight_zero_points: one or O entries.
        strides: (y, x), elements of the result from one element of the data to the next.
        padding: (top, left, bottom, right), cut off the result.
        output_padding: (y, x), added at the bottom and the right.
        dilation: (y, x), elements of the result from one tap to the next.
        groups: divides C and O; output channels of a group are adjacent.
        bias: int32[O].

    Returns:
        int32[N, OH, OW, O], wrapping modulo 2^32.  Sums are taken in float64, which is exact.
    """
    channels, kernel_h, kernel_w, depth = weight.shape
    batch, height, width, _ = data.shape
    zero_points = np.asarray(weight_zero_points, dtype=np.int32).reshape(-1, 1, 1, 1)
    taps = (weight.astype(np.int32) - zero_points).astype(np.float64)
    taps = taps.reshape(groups, channels // groups, kernel_h, kernel_w, depth)
    points = (data.astype(np.int32) - input_zero_point).astype(np.float64)
    points = points.reshape(-1, groups, depth).transpose(1, 0, 2)
    rows = (height - 1) * strides[0] + (kernel_h - 1) * dilation[0] + 1 + output_padding[0]
    columns = (width - 1) * strides[1] + (kernel_w - 1) * dilation[1] + 1 + output_padding[1]
    total = np.zeros((batch, rows, columns, channels))
    for i in range(kernel_h):
        for j in range(kernel_w):
            product = points @ taps[:, :, i, j, :].transpose(0, 2, 1)
            spread = product.transpose(1, 0, 2).reshape(batch, height, width, channels)
            y, x = i * dilation[0], j * dilation[1]
            y_end, x_end = y + (height - 1) * strides[0] + 1, x + (width - 1) * strides[1] + 1
            total[:, y : y_end : strides[0], x : x_end : strides[1], :] += spread
    top, left, bottom, right = padding
    acc = total[:, top : rows - bottom, left : columns - right].astype(np.int64)
    return (acc if bias is None else acc + bias).astype(np.int32)
