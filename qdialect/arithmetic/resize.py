"""Says which elements of the input an element of a resized image is made of, and their weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.choices import Coordinates, Interpolation, Nearest, Ratio
from qdialect.arithmetic.quantization import FloatArray

Array = NDArray[Any]
_F32 = np.float32
_HALF = _F32(0.5)
_NEXT_TO_HALF = _F32(1e-6)
_ONE_FIXED = 1 << 10
_ONE_XNNPACK = 1 << 11


@dataclass(frozen=True)
class Taps:
    """For each index along a dimension of the result, two indices into the input and their weights."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    low_weight: Array
    high_weight: Array


def source_coordinates(
    coordinates: Coordinates, ratio: Ratio, extent: int, size: int, scale: float | None = None
) -> NDArray[np.float32]:
    """The coordinates of `size` elements of the result among `extent` ones of the input, float32[size].

    `scale` is what to divide by where that is not the ratio of the extents.
    Sources: TFLite ComputeInterpolationValues and GetNearestNeighbor; ONNX Runtime GetOriginalCoordinateFromResized.
    """
    indices = np.arange(size, dtype=_F32)
    if coordinates is Coordinates.ALIGN_CORNERS:
        if size == 1:
            return np.zeros(1, dtype=_F32)
        source, target = _F32(extent - 1), _F32(size - 1)
        return indices * (source / target) if ratio is Ratio.MULTIPLY else indices * source / target
    if coordinates is Coordinates.PYTORCH_HALF_PIXEL and size == 1:
        return np.zeros(1, dtype=_F32)
    centers = indices if coordinates is Coordinates.ASYMMETRIC else indices + _HALF
    divisor = _F32(size) / _F32(extent) if scale is None else _F32(scale)
    found = centers * (_F32(extent) / _F32(size)) if ratio is Ratio.MULTIPLY else centers / divisor
    return found - _HALF if coordinates in (Coordinates.HALF_PIXEL, Coordinates.PYTORCH_HALF_PIXEL) else found


def nearest_indices(found: Array, nearest: Nearest, extent: int, ratio: Ratio) -> NDArray[np.int64]:
    """The index nearest to each coordinate in `found`, ties by `nearest`.

    ONNX Runtime, whose ratio is a quotient, takes what is next to a half for a tie (GetNearestPixelFromOriginal).
    """
    below = np.floor(found)
    rest = found - below
    is_tie = np.abs(rest - _HALF) < (_NEXT_TO_HALF if ratio is Ratio.DIVIDE else _F32(0))
    is_above = {
        Nearest.FLOOR: np.zeros(rest.shape, dtype=np.bool_),
        Nearest.CEIL: rest > 0,
        Nearest.ROUND_PREFER_FLOOR: (rest > _HALF) & ~is_tie,
        Nearest.ROUND_PREFER_CEIL: (rest >= _HALF) | is_tie,
    }[nearest]
    return np.clip(below.astype(np.int64) + is_above, 0, extent - 1)


def interpolation_taps(arithmetic: Interpolation, coordinates: Coordinates, extent: int, size: int) -> Taps:
    """Indices and weights along one dimension."""
    if arithmetic is Interpolation.TFLITE_FIXED:
        return _fixed_taps(coordinates, extent, size)
    if arithmetic is Interpolation.XNNPACK_FIXED:
        return _xnnpack_taps(source_coordinates(coordinates, Ratio.MULTIPLY, extent, size), extent)
    if arithmetic is Interpolation.TFLITE_FLOAT:
        return _tflite_taps(source_coordinates(coordinates, Ratio.MULTIPLY, extent, size), extent)
    # Distances to the other element, both 0.5 where it is the same (ONNX Runtime SetupUpsampleBilinear).
    inside = np.clip(source_coordinates(coordinates, Ratio.DIVIDE, extent, size), 0, extent - 1).astype(_F32)
    low = inside.astype(np.int64)
    high = np.minimum(low + 1, extent - 1)
    is_edge = low == high
    low_weight = np.where(is_edge, _HALF, np.abs(inside - high.astype(_F32)))
    high_weight = np.where(is_edge, _HALF, np.abs(inside - low.astype(_F32)))
    return Taps(low, high, low_weight.astype(_F32), high_weight.astype(_F32))


def _tflite_taps(found: Array, extent: int) -> Taps:
    """``v[low] * (1 - d) + v[high] * d`` with d = coordinate - low (TFLite ResizeBilinear)."""
    low = np.clip(np.floor(found).astype(np.int64), 0, extent - 1)
    high = np.clip(np.ceil(found).astype(np.int64), 0, extent - 1)
    offset = found - low.astype(_F32)
    return Taps(low, high, _F32(1) - offset, offset)


def _fixed_taps(coordinates: Coordinates, extent: int, size: int) -> Taps:
    """As for float, with 10 fraction bits (TFLite ResizeBilinearInteger, ComputeInterpolationValuesInteger)."""
    indices = np.arange(size, dtype=np.int64)
    if coordinates is Coordinates.ALIGN_CORNERS and size > 1:
        stride = (_ONE_FIXED * (extent - 1) + (size - 1) // 2) // (size - 1)
    else:
        stride = (_ONE_FIXED * extent + size // 2) // size
    found = indices * stride
    if coordinates is Coordinates.HALF_PIXEL:
        found += stride // 2 - _ONE_FIXED // 2
    low = np.clip(found // _ONE_FIXED, 0, extent - 1)
    high = np.clip(-(-found // _ONE_FIXED), 0, extent - 1)
    # At the edge both are one element, and only the sum of the weights counts.
    offset = np.where(low == high, 0, found - low * _ONE_FIXED)
    return Taps(low, high, (_ONE_FIXED - offset).astype(np.int32), offset.astype(np.int32))


def _xnnpack_taps(found: Array, extent: int) -> Taps:
    """Weights are half_even(2^11 * d) with d = coordinate - low, clamped to the input (XNNPACK indirection_init)."""
    inside = np.clip(found, 0, extent - 1).astype(_F32)
    low = inside.astype(np.int64)
    offset = np.rint((inside - low.astype(_F32)) * _F32(_ONE_XNNPACK)).astype(np.int32)
    return Taps(low, np.minimum(low + 1, extent - 1), _ONE_XNNPACK - offset, offset)


# Weights of resized rows by cubic convolution and by triangles: a result is a sum of few elements times their weights.
#
# Formulas: R. Keys, Cubic Convolution Interpolation for Digital Image Processing; where a row shrinks and `antialias`
# is set, ONNX's Resize stretches the filter by the scale and divides by the sum of the weights.

Filter = Callable[[FloatArray], FloatArray]


def cubic(coefficient: float) -> Filter:
    """Keys' kernel with a support of 2 on either side."""

    def weights(distances: FloatArray) -> FloatArray:
        x, a = np.abs(distances), distances.dtype.type(coefficient)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0.0))

    return weights


def triangle(distances: FloatArray) -> FloatArray:
    """Of linear interpolation, with a support of 1 on either side."""
    return np.maximum(1 - np.abs(distances), 0.0)


def filter_taps(
    function: Filter, support: int, found: FloatArray, extent: int, *, stretch: float, excludes_outside: bool
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Elements and their weights for the coordinates `found`, in whose type they are computed; both [taps, size].

    The filter, of a `support` on either side, is `stretch` times as wide, at least 1.  Elements outside of the row are
    its outermost ones, or with `excludes_outside` there are none and the others are divided by their sum.
    """
    reach = int(np.ceil(support * stretch))
    low, offsets = np.floor(found), np.arange(1 - reach, 1 + reach)[:, None]
    taps = low.astype(np.int64) + offsets
    weights = function((offsets.astype(found.dtype) - (found - low)) / found.dtype.type(stretch))
    if excludes_outside:
        weights = np.where((taps >= 0) & (taps < extent), weights, 0)
    if excludes_outside or stretch > 1:
        weights = weights / weights.sum(0)
    if stretch > 1:
        # A filter against aliasing ends where its weights are zero.
        taps = np.where(weights == 0, low.astype(np.int64), taps)
    return np.clip(taps, 0, extent - 1), weights.astype(np.float32)
