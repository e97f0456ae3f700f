"""Weights of resized rows by cubic convolution and by triangles, as matrices: a result is a row of weights times a row.

Formulas: R. Keys, Cubic Convolution Interpolation for Digital Image Processing; where a row shrinks and `antialias` is
set, ONNX's Resize stretches the filter by the scale and divides by the sum of the weights.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Filter = Callable[[Array], Array]


def cubic(coefficient: float) -> Filter:
    """Keys' kernel with a support of 2 on either side."""

    def weights(distances: Array) -> Array:
        x, a = np.abs(distances), coefficient
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0.0))

    return weights


def triangle(distances: Array) -> Array:
    """Of linear interpolation, with a support of 1 on either side."""
    return np.maximum(1 - np.abs(distances), 0.0)


def weight_matrix(
    function: Filter, support: int, found: Array, extent: int, *, stretch: float, excludes_outside: bool
) -> NDArray[np.float32]:
    """[size, extent] of weights for the coordinates `found`, float64[size].

    The filter, of a `support` on either side, is `stretch` times as wide, at least 1.  Elements outside of the row are
    its outermost ones, or with `excludes_outside` there are none and the others are divided by their sum.
    """
    reach = int(np.ceil(support * stretch))
    first = np.floor(found).astype(np.int64) - reach
    taps = first[:, None] + np.arange(2 * reach + 2)
    weights = function((taps - found[:, None]) / stretch)
    if excludes_outside:
        weights = np.where((taps >= 0) & (taps < extent), weights, 0.0)
    if excludes_outside or stretch > 1:
        weights = weights / weights.sum(1, keepdims=True)
    matrix = np.zeros((len(found), extent))
    rows = np.broadcast_to(np.arange(len(found))[:, None], taps.shape)
    np.add.at(matrix, (rows, np.clip(taps, 0, extent - 1)), weights)
    return matrix.astype(np.float32)
