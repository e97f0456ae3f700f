"""Moves values, also at indices known at run time, and resizes images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.choices import Interpolation, ScatterReduction
from qdialect.arithmetic.resize import Taps
from qdialect.dialect import DynamicGatherOp, DynamicScatterOp, ResizeBilinearOp
from qdialect.reference.evaluators import Array, Arrays, evaluates, nearest_rows

# Evaluators of gathers and scatters by indices that are known at run time alone.


@evaluates(DynamicGatherOp)
def _gather(op: DynamicGatherOp, operands: Arrays) -> Array:
    data, indices = operands
    return np.take(data, nearest_rows(indices, data.shape[op.axis]), axis=op.axis)


@evaluates(DynamicScatterOp)
def _scatter(op: DynamicScatterOp, operands: Arrays) -> Array:
    data, indices, updates = operands
    result, reduce = data.copy(), _REDUCTIONS[op.reduction]
    # One after another: of equal indices the last one stands.
    with np.errstate(all="ignore"):
        for row, update in zip(nearest_rows(indices, len(data)), updates, strict=True):
            result[row] = reduce(result[row], update)
    return result


_REDUCTIONS: Mapping[ScatterReduction, Callable[[Array, Array], Array]] = {
    ScatterReduction.NONE: lambda _, update: update,
    ScatterReduction.ADD: np.add,
    ScatterReduction.MUL: np.multiply,
    ScatterReduction.MIN: np.minimum,
    ScatterReduction.MAX: np.maximum,
}


# Resized images.

Image = NDArray[Any]
_F32 = np.float32
_HALF = _F32(0.5)


def resize_nearest(data: Image, rows: Image, columns: Image) -> Image:
    """An image [N, H, W, C] made of the elements at `rows` and `columns`."""
    return np.take(np.take(data, rows, axis=1), columns, axis=2)


def resize_bilinear(data: Image, rows: Taps, columns: Taps, arithmetic: Interpolation) -> Image:
    """An image [N, H, W, C] interpolated from `rows` and `columns`.

    ``tflite_fixed``: ``half_away(sum * 2^-20)``; ``xnnpack_fixed``: ``floor(sum * 2^-22 + 1/2)``; ``tflite_float``:
    terms ``(v * row) * column``, columns outermost, quantized values ``trunc(sum + 0.5)``; ``onnx_float``: terms
    ``(column * row) * v``, rows outermost, quantized values ``trunc(sum)``.
    """
    vertical = ((rows.low, rows.low_weight), (rows.high, rows.high_weight))
    horizontal = ((columns.low, columns.low_weight), (columns.high, columns.high_weight))
    pairs = [(row, column) for row in vertical for column in horizontal]
    if arithmetic is not Interpolation.ONNX_FLOAT:
        pairs = [(row, column) for column in horizontal for row in vertical]
    elements = data.astype(np.int64 if rows.low_weight.dtype == np.int32 else _F32)
    total: Image | None = None
    with np.errstate(over="ignore", invalid="ignore"):
        for (row, row_weight), (column, column_weight) in pairs:
            values = resize_nearest(elements, row, column)
            by_row, by_column = row_weight[:, None, None], column_weight[:, None]
            in_order = arithmetic is not Interpolation.ONNX_FLOAT
            term = values * by_row * by_column if in_order else by_column * by_row * values
            total = term if total is None else total + term
    assert total is not None
    if arithmetic is Interpolation.TFLITE_FIXED:
        return (total + (1 << 19) + (total >> 63)) >> 20
    if arithmetic is Interpolation.XNNPACK_FIXED:
        return (total + (1 << 21)) >> 22
    if data.dtype == _F32:
        return total
    rounding = _HALF if arithmetic is Interpolation.TFLITE_FLOAT else _F32(0)
    info = np.iinfo(data.dtype.name)
    return np.clip(np.trunc(total + rounding), info.min, info.max)


# Evaluators of the ops that resize images.


evaluates(ResizeBilinearOp)(lambda op, x: resize_bilinear(x[0], *op.taps, Interpolation(op.arithmetic)))
