"""Exact 2-D convolution of quantized values: NHWC data, OHWI weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.multipliers import IntArray
from qdialect.arithmetic.quantization import QuantizedArray


def output_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """floor((size + padding - (kernel - 1) * dilation - 1) / stride) + 1, with the padding of both ends together."""
    return (size + padding - (kernel - 1) * dilation - 1) // stride + 1


def conv2d_accumulate(
    data: QuantizedArray,
    weight: QuantizedArray,
    input_zero_point: int,
    weight_zero_points: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
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
        int32[N, OH, OW, O], wrapping modulo 2^32 as an int32 accumulator does.
    """
    top, left, bottom, right = padding
    centred = np.pad(data.astype(np.int32) - input_zero_point, ((0, 0), (top, bottom), (left, right), (0, 0)))
    offsets = weight.astype(np.int32) - np.asarray(weight_zero_points, dtype=np.int32).reshape(-1, 1, 1, 1)
    acc = exact_conv2d(centred, offsets, strides, dilation, groups)
    return (acc if bias is None else acc + bias).astype(np.int32)


def exact_conv2d(
    padded: NDArray[np.integer[Any]],
    weight: NDArray[np.integer[Any]],
    strides: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> IntArray:
    """Sums of products, int64[N, OH, OW, O], taken in float64: exact as long as they are below 2^53."""
    channels, *kernel, depth = weight.shape
    batch, *extents, _ = padded.shape
    size = [output_size(n, k, s, 0, d) for n, k, s, d in zip(extents, kernel, strides, dilation, strict=True)]
    taps = weight.astype(np.float64).reshape(groups, channels // groups, *kernel, depth)
    total = np.zeros((groups, batch * size[0] * size[1], channels // groups))
    for (row, column), window in windows(padded.astype(np.float64), kernel, size, strides, dilation):
        total += _multiply_tap(window.reshape(-1, groups, depth), taps[:, :, row, column, :])
    return total.transpose(1, 0, 2).reshape(batch, *size, channels).astype(np.int64)


def windows(
    padded: NDArray[Any],
    kernel: Sequence[int],
    size: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int] = (1, 1),
) -> Iterator[tuple[tuple[int, ...], NDArray[Any]]]:
    """For each position of the kernel, the elements [N, OH, OW, C] that it meets; `size` is OH and OW."""
    for position in np.ndindex(*kernel):
        starts = [i * d for i, d in zip(position, dilation, strict=True)]
        y, x = (slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, size, strides, strict=True))
        yield position, padded[:, y, x]


def _multiply_tap(points: NDArray[np.float64], tap: NDArray[np.float64]) -> NDArray[np.float64]:
    """[P, G, I] points times a [G, O, I] tap: [G, P, O]; a product of matrices unless each has one input channel."""
    by_group = points.transpose(1, 0, 2)
    if tap.shape[2] == 1:
        return by_group * tap.transpose(0, 2, 1)
    return by_group @ tap.transpose(0, 2, 1)
