"""Ops that move quantized values without looking at them; the dtype stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Codes = NDArray[np.integer[Any]]


def pad(data: _Codes, before: Sequence[int], after: Sequence[int], value: int) -> _Codes:
    """`data` with `before[i]` and `after[i]` elements of the code `value` around axis i."""
    # NumPy pads no scalar.
    return np.pad(data, list(zip(before, after, strict=True)), constant_values=value) if data.ndim else data


def reshape(data: _Codes, shape: Sequence[int]) -> _Codes:
    """`data` in row-major order with another shape of as many elements."""
    return data.reshape(tuple(shape))


def slice_of(data: _Codes, begin: Sequence[int], size: Sequence[int], strides: Sequence[int]) -> _Codes:
    """Elements begin[i] + k * strides[i], k < size[i], along axis i."""
    places = zip(begin, size, strides, strict=True)
    return data[tuple(slice(first, first + (count - 1) * step + 1, step) for first, count, step in places)].copy()


def gather(data: _Codes, axis: int, indices: Sequence[int]) -> _Codes:
    """Element i along `axis` is element indices[i] of `data`."""
    return np.take(data, np.array(indices, dtype=np.int64), axis=axis)


def transpose(data: _Codes, permutation: Sequence[int]) -> _Codes:
    """Axis i of the result is axis permutation[i] of `data`, stored contiguously."""
    return data.transpose(tuple(permutation)).copy()


def broadcast(data: _Codes, shape: Sequence[int]) -> _Codes:
    """`data` repeated up to `shape` by NumPy's rules."""
    return np.broadcast_to(data, tuple(shape))
