"""Ops that move quantized values without looking at them; the dtype stays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.quant_math import QuantizedArray


def pad(data: QuantizedArray, before: Sequence[int], after: Sequence[int], value: int) -> QuantizedArray:
    """`data` with `before[i]` and `after[i]` elements of the quantized value `value` around axis i."""
    # NumPy pads no scalar.
    return np.pad(data, list(zip(before, after, strict=True)), constant_values=value) if data.ndim else data


def reshape(data: QuantizedArray, shape: Sequence[int]) -> QuantizedArray:
    """`data` in row-major order with another shape of as many elements."""
    return data.reshape(tuple(shape))


def slice_of(data: QuantizedArray, begin: Sequence[int], size: Sequence[int], strides: Sequence[int]) -> QuantizedArray:
    """Elements begin[i] + k * strides[i], k < size[i], along axis i."""
    dimensions = zip(begin, size, strides, strict=True)
    return data[tuple(slice(first, first + (count - 1) * step + 1, step) for first, count, step in dimensions)].copy()


def gather(data: QuantizedArray, axis: int, indices: Sequence[int]) -> QuantizedArray:
    """Element i along `axis` is element indices[i] of `data`."""
    return np.take(data, np.array(indices, dtype=np.int64), axis=axis)


def transpose(data: QuantizedArray, permutation: Sequence[int]) -> QuantizedArray:
    """Axis i of the result is axis permutation[i] of `data`, stored contiguously."""
    return data.transpose(tuple(permutation)).copy()


def broadcast(data: QuantizedArray, shape: Sequence[int]) -> QuantizedArray:
    """`data` repeated up to `shape` by NumPy's rules."""
    return np.broadcast_to(data, tuple(shape))
