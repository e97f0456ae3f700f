"""Convolution of N-dimensional data in float64, or exactly in int64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.support.interface import Array


def convolution(
    data: Array, weights: Array, pads: Sequence[int], strides: Sequence[int], dilations: Sequence[int], groups: int
) -> Array:
    """Data (batch, channels, *extents) and weights (filters, channels / groups, *window) to (batch, filters, *sizes).

    `pads` has the zeros before each axis, then those behind; the sum goes through the positions of the window in order.
    """
    rank = data.ndim - 2
    around = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    padded = np.pad(data, around)
    window = weights.shape[2:]
    reach = [dilation * (extent - 1) + 1 for dilation, extent in zip(dilations, window, strict=True)]
    sizes = [(have - need) // step + 1 for have, need, step in zip(padded.shape[2:], reach, strides, strict=True)]
    channels = padded.reshape(padded.shape[0], groups, -1, *padded.shape[2:])
    filters = weights.reshape(groups, -1, *weights.shape[1:])
    total = np.zeros((data.shape[0], groups, filters.shape[1], *sizes), np.result_type(data, weights))
    for index in np.ndindex(*window):
        starts = [at * dilation for at, dilation in zip(index, dilations, strict=True)]
        taken = tuple(
            slice(start, start + step * (size - 1) + 1, step)
            for start, step, size in zip(starts, strides, sizes, strict=True)
        )
        part = channels[(slice(None),) * 3 + taken].reshape(*channels.shape[:3], -1)
        # (groups, filters, channels) by (batch, groups, channels, positions): a product of matrices for each group.
        total += (filters[(slice(None),) * 3 + index] @ part).reshape(total.shape)
    return total.reshape(data.shape[0], -1, *sizes)


def maximum(
    data: Array,
    window: Sequence[int],
    pads: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    *,
    rounds_up: bool,
) -> Array:
    """The maximum over each window of (batch, channels, *extents).

    With `rounds_up` a last window may reach beyond the end, but it must start in the data or in the padding before it:
    the rule of ONNX's and PyTorch's `ceil_mode`.
    """
    rank = data.ndim - 2
    sizes: list[int] = []
    around = [(0, 0), (0, 0)]
    for axis, (need, before, behind, step, apart) in enumerate(
        zip(window, pads[:rank], pads[rank:], strides, dilations, strict=True)
    ):
        extent, reach = data.shape[2 + axis], apart * (need - 1) + 1
        free = extent + before + behind - reach
        size = (-(-free // step) if rounds_up else free // step) + 1
        size -= rounds_up and (size - 1) * step >= extent + before
        sizes.append(size)
        around.append((before, max(behind, (size - 1) * step + reach - extent - before)))
    padded = np.pad(data.astype(np.float64), around, constant_values=-np.inf)
    found = np.full((*data.shape[:2], *sizes), -np.inf)
    for index in np.ndindex(*window):
        taken = tuple(
            slice(at * apart, at * apart + step * (size - 1) + 1, step)
            for at, apart, step, size in zip(index, dilations, strides, sizes, strict=True)
        )
        found = np.maximum(found, padded[(slice(None),) * 2 + taken])
    return found.astype(data.dtype)


def padding_of(mode: str, data: Sequence[int], reach: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The pads of ONNX's `auto_pad`: ``VALID``, ``SAME_UPPER`` or ``SAME_LOWER``."""
    if mode == "VALID":
        return [0] * 2 * len(data)
    totals = [
        max(0, (-(-size // step) - 1) * step + need - size)
        for size, need, step in zip(data, reach, strides, strict=True)
    ]
    small, large = [total // 2 for total in totals], [-(-total // 2) for total in totals]
    return [*small, *large] if mode == "SAME_UPPER" else [*large, *small]
