"""Sums of float32 values in an order that vectors can follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTIAL_SUMS = 16
"""Of a row; a number of every vector's lanes divides it."""


def partial_sums(shape: Sequence[int], axes: Sequence[int]) -> int:
    """How many partial sums a sum over `axes` (ascending) has: `PARTIAL_SUMS` along a last axis of twice as many."""
    is_along_rows = len(axes) > 0 and axes[-1] == len(shape) - 1
    return PARTIAL_SUMS if is_along_rows and shape[-1] >= 2 * PARTIAL_SUMS else 1


def row_sum(data: NDArray[Any], axes: Sequence[int], *, in_order: bool = False) -> NDArray[np.float32]:
    """The sum over `axes` (ascending), which are dropped; every addition is rounded, and starts from zero.

    Without partial sums, or `in_order`, the terms are added in row-major order.  With P of them, term i of a row of n
    joins partial sum i modulo P while i < n - n mod P; the partial sums are added in order, the other terms too, then
    both sums.
    """
    count = 1 if in_order else partial_sums(data.shape, axes)
    kept = [i for i in range(data.ndim) if i not in axes]
    moved = data.transpose([*kept, *axes]).astype(np.float32)
    shape = moved.shape[: len(kept)]
    if count == 1:
        return _in_order(moved.reshape(*shape, -1))
    rows = moved.reshape(*shape, -1, moved.shape[-1])
    whole = rows.shape[-1] // count * count
    groups = rows[..., :whole].reshape(*shape, -1, count)
    total = _in_order(_in_order(np.moveaxis(groups, -1, -2)))
    if whole == rows.shape[-1]:
        return total
    return total + _in_order(rows[..., whole:].reshape(*shape, -1))


def _in_order(terms: NDArray[np.float32]) -> NDArray[np.float32]:
    """The sum of the last axis, from zero: a sum of minus zeros is plus zero."""
    if terms.shape[-1] == 0:
        return np.zeros(terms.shape[:-1], np.float32)
    return np.add.accumulate(terms, axis=-1, dtype=np.float32)[..., -1] + np.float32(0)
