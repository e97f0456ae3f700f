"""Moves values, also at indices known at run time, and resizes images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import QuantizedArray
from qdialect.arithmetic.choices import Interpolation, ScatterReduction
from qdialect.arithmetic.resize import Taps
from qdialect.dialect import DynamicGatherOp, DynamicScatterOp, ResizeBilinearOp, ResizeNearestOp
from qdialect.reference.evaluators import Array, Arrays, evaluates, nearest_rows

# Ops that move quantized values without looking at them; the dtype stays.


def pad(data: QuantizedArray, before: Sequence[int], after: Sequence[int], value: int) -> QuantizedArray:
    """`data` with `before[i]` and `after[i]` elements of the quantized value `value` around axis i."""
    # NumPy pads no scalar.
    return np.pad(data, list(zip(before, after, strict=True)), constant_values=value) if data.ndim else data


def reshape(data: QuantizedArray, shape: Sequence[int]) -> QuantizedArray:
    """`data` in row-major order with another shape of the same number of elements."""
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


evaluates(ResizeNearestOp)(lambda op, x: resize_nearest(x[0], *op.nearest_indices))
evaluates(ResizeBilinearOp)(lambda op, x: resize_bilinear(x[0], *op.taps, Interpolation(op.arithmetic)))
