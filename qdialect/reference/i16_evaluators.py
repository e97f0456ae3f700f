"""Evaluators of contractions of 16-bit activations, summed up in int64."""

from __future__ import annotations

import numpy as np

from qdialect.dialect import I16Conv2DOp, I16DenseOp, I16MatmulOp, I16RequantizeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.quant_math import IntArray
from qdialect.quant_math.i16_requantize import i16_requantize
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(I16Conv2DOp)
def _conv2d(op: I16Conv2DOp, operands: Arrays) -> Array:
    data, weight, *bias = operands
    top, left, bottom, right = op.padding
    data = np.pad(data, ((0, 0), (top, bottom), (left, right), (0, 0)))
    batch, height, width, channels = shape_of(op.output.type)
    _, rows, columns, depth = weight.shape
    groups, strides, dilation = op.groups, op.strides, op.dilation
    total = np.zeros((groups, batch * height * width, channels // groups), dtype=np.int64)
    taps = weight.reshape(groups, channels // groups, rows, columns, depth).astype(np.int64)
    for i, j in np.ndindex(rows, columns):
        y, x = i * dilation[0], j * dilation[1]
        window = data[:, y : y + (height - 1) * strides[0] + 1 : strides[0]]
        window = window[:, :, x : x + (width - 1) * strides[1] + 1 : strides[1]].astype(np.int64)
        by_group = window.reshape(-1, groups, depth).transpose(1, 0, 2)
        total += by_group @ taps[:, :, i, j].transpose(0, 2, 1)
    return _biased(total.transpose(1, 0, 2).reshape(batch, height, width, channels), bias)


@evaluates(I16DenseOp)
def _dense(_: I16DenseOp, operands: Arrays) -> Array:
    data, weight, *bias = operands
    return _biased(data.astype(np.int64) @ weight.astype(np.int64).T, bias)


@evaluates(I16MatmulOp)
def _matmul(_: I16MatmulOp, operands: Arrays) -> Array:
    data, weight = operands
    return data.astype(np.int64) @ weight.astype(np.int64)


@evaluates(I16RequantizeOp)
def _requantize(op: I16RequantizeOp, operands: Arrays) -> Array:
    scales = op.input_scale, op.weight_scales, op.output_scale
    bounds = op.output_min, op.output_max
    return i16_requantize(operands[0].astype(np.int64), *scales, *bounds, op.rounding, op.multiplier)


def _biased(total: IntArray, bias: Arrays) -> IntArray:
    """The interpreter's conversion to the result's type keeps the low bits."""
    return total + bias[0].astype(np.int64) if bias else total
