"""Exact 2-D convolution of 8-bit quantized values into int32 accumulators: NHWC data, OHWI weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.quantization import QuantizedArray


def output_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """floor((size + padding - (kernel - 1) * dilation - 1) / stride) + 1, with the padding of both ends together."""
    return (size + padding - (kernel - 1) * dilation - 1) // stride + 1


def conv2d_accumulate(
    data: QuantizedArray,
    weight: QuantizedArray,
    input_zero_point: int,
    weight_zero_points: Sequence[int],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int],
    dilation: tuple[int, int],
    groups: int,
    bias: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """acc[n, y, x, o] = bias[o] + sum over (r, s, c) of (data - z_x) * (weight - z_w[o]).

    Args:
        data: 8-bit quantized values [N, H, W, C].
        weight: 8-bit quantized values [O, KH, KW, C / groups]; depthwise is groups == C.
        input_zero_point: z_x, which is also what padding holds, so padding adds nothing.
        weight_zero_points: one or O entries.
        strides: (y, x).
        padding: (top, left, bottom, right).
        dilation: (y, x).
        groups: divides C and O; output channels of a group are adjacent.
        bias: int32[O].

    Returns:
        int32[N, OH, OW, O], wrapping modulo 2^32 as an int32 accumulator does.  Sums are taken in float64, which is
        exact: a term is below 2^18, so 2^53 is out of reach.
    """
    top, left, bottom, right = padding
    out_channels, kernel_h, kernel_w, group_in = weight.shape
    batch, height, width, _ = data.shape
    out_h = output_size(height, kernel_h, strides[0], top + bottom, dilation[0])
    out_w = output_size(width, kernel_w, strides[1], left + right, dilation[1])
    zero_points = np.asarray(weight_zero_points, dtype=np.int32).reshape(-1, 1, 1, 1)
    taps = (weight.astype(np.int32) - zero_points).astype(np.float64)
    taps = taps.reshape(groups, out_channels // groups, kernel_h, kernel_w, group_in)
    centred = np.pad(data.astype(np.int32) - input_zero_point, ((0, 0), (top, bottom), (left, right), (0, 0)))
    total = np.zeros((groups, batch * out_h * out_w, out_channels // groups))
    for row, column, window in _windows(
        centred.astype(np.float64), (kernel_h, kernel_w), strides, dilation, out_h, out_w
    ):
        points = window.reshape(-1, groups, group_in)
        total += _multiply_tap(points, taps[:, :, row, column, :])
    acc = total.transpose(1, 0, 2).reshape(batch, out_h, out_w, out_channels).astype(np.int64)
    return (acc if bias is None else acc + bias).astype(np.int32)


def _windows(
    padded: NDArray[np.float64],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilation: tuple[int, int],
    out_h: int,
    out_w: int,
) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """For each kernel position, the [N, OH, OW, C] elements it meets."""
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            y, x = row * dilation[0], column * dilation[1]
            y_end, x_end = y + (out_h - 1) * strides[0] + 1, x + (out_w - 1) * strides[1] + 1
            yield row, column, padded[:, y : y_end : strides[0], x : x_end : strides[1], :]


def _multiply_tap(points: NDArray[np.float64], tap: NDArray[np.float64]) -> NDArray[np.float64]:
    """[P, G, I] points times a [G, O, I] tap: [G, P, O]; a product of matrices unless each has one input channel."""
    by_group = points.transpose(1, 0, 2)
    if tap.shape[2] == 1:
        return by_group * tap.transpose(0, 2, 1)
    return by_group @ tap.transpose(0, 2, 1)
