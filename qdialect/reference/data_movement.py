"""Ops that move codes without looking at them; the dtype stays."""

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


def transpose(data: _Codes, permutation: Sequence[int]) -> _Codes:
    """Axis i of the result is axis permutation[i] of `data`, stored contiguously."""
    return data.transpose(tuple(permutation)).copy()


def broadcast(data: _Codes, shape: Sequence[int]) -> _Codes:
    """`data` repeated up to `shape` by NumPy's rules."""
    return np.broadcast_to(data, tuple(shape))
