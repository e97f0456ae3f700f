"""Evaluators of reductions and contractions of f32 values, every operation rounded to float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from qdialect.arithmetic.float32.machine import row_sum
from qdialect.arithmetic.machine import multiply_add
from qdialect.dialect import (
    F32Conv2DOp,
    F32ExtremeOp,
    F32MatmulOp,
    F32MaxOp,
    F32MinOp,
    F32ProdOp,
    F32ReduceOp,
    F32SumOp,
)
from qdialect.dialect.type_constraints import shape_of
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(F32SumOp)
def _sum(op: F32SumOp, operands: Arrays) -> Array:
    with np.errstate(all="ignore"):
        return _shaped(op, row_sum(operands[0], op.axes, in_order=op.in_order))


@evaluates(F32ProdOp)
def _product(op: F32ProdOp, operands: Arrays) -> Array:
    rows = _rows(operands[0], op.axes)
    with np.errstate(all="ignore"):
        return _shaped(op, np.multiply.accumulate(rows, axis=-1, dtype=np.float32)[..., -1])


@evaluates(F32MaxOp)
def _max(op: F32MaxOp, operands: Arrays) -> Array:
    rows = _counted(op, operands[0])
    if op.from_zero:
        return _shaped(op, rows.view(np.int32).max(axis=-1, initial=0).view(np.float32))
    return _shaped(op, _largest(rows))


@evaluates(F32MinOp)
def _min(op: F32MinOp, operands: Arrays) -> Array:
    rows = _counted(op, operands[0])
    if op.from_zero:
        bits = rows.view(np.uint32).max(axis=-1, initial=0).view(np.int32)
        return _shaped(op, np.minimum(bits, np.int32(0)).view(np.float32))
    return _shaped(op, -_largest(-rows))


def _counted(op: F32ExtremeOp, data: Array) -> Array:
    rows = _rows(data, op.axes)
    if not op.nan_as_zero:
        return rows
    beyond = rows > 0 if isinstance(op, F32MaxOp) else rows < 0
    return np.where(beyond if op.from_zero else ~np.isnan(rows), rows, np.float32(0))


def _rows(data: Array, axes: Sequence[int]) -> Array:
    """The reduced axes as one, the last."""
    kept = [i for i in range(data.ndim) if i not in axes]
    moved = data.transpose([*kept, *axes])
    return moved.reshape(*moved.shape[: len(kept)], -1)


def _largest(rows: Array) -> Array:
    """Plus zero is larger than minus zero."""
    largest = rows.max(axis=-1)
    has_plus = ((rows == 0) & ~np.signbit(rows)).any(axis=-1)
    return np.where((largest == 0) & has_plus, np.float32(0), largest)


def _shaped(op: F32ReduceOp, value: Array) -> Array:
    return np.asarray(value).reshape(shape_of(op.output.type))


def _step(op: F32MatmulOp | F32Conv2DOp) -> Callable[[Array, Array, Array], Array]:
    """What adds a product to a sum."""
    return (lambda a, b, total: total + a * b) if op.rounded_products else multiply_add


@evaluates(F32MatmulOp)
def _matmul(op: F32MatmulOp, operands: Arrays) -> Array:
    data, matrix = operands
    total, add_product = np.zeros(shape_of(op.output.type), dtype=np.float32), _step(op)
    with np.errstate(all="ignore"):
        for k in range(data.shape[-1]):
            total = add_product(data[..., k, np.newaxis], matrix[..., k, np.newaxis, :], total)
    return total


@evaluates(F32Conv2DOp)
def _conv2d(op: F32Conv2DOp, operands: Arrays) -> Array:
    data, weight = operands
    batch, height, width, channels = shape_of(op.output.type)
    _, rows, columns, depth = weight.shape
    groups, strides, dilation = op.groups, op.strides, op.dilation
    total = np.zeros((batch, height, width, groups, channels // groups), dtype=np.float32)
    add_product = _step(op)
    taps = weight.reshape(groups, channels // groups, rows, columns, depth)
    with np.errstate(all="ignore"):
        for i, j, c in np.ndindex(rows, columns, depth):
            y, x = i * dilation[0], j * dilation[1]
            window = data[:, y : y + (height - 1) * strides[0] + 1 : strides[0], :, c::depth]
            window = window[:, :, x : x + (width - 1) * strides[1] + 1 : strides[1]]
            total = add_product(window[..., np.newaxis], taps[:, :, i, j, c], total)
    return total.reshape(batch, height, width, channels)
