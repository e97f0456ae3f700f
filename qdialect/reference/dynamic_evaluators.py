"""Evaluators of products whose scale and zero point are known at run time, every operation rounded to float32."""

from __future__ import annotations

import numpy as np

from qdialect.dialect import DynamicConv2DOp, DynamicDenseOp
from qdialect.quant_math.activations import ACTIVATIONS
from qdialect.quant_math.convolution import conv2d_accumulate
from qdialect.reference.dense import dense_accumulate
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(DynamicDenseOp)
def _dense(op: DynamicDenseOp, operands: Arrays) -> Array:
    data, weight, _, zero_point, *_ = operands
    rows = data.shape[:-1]
    points = np.broadcast_to(zero_point.reshape(-1) if zero_point.size == 1 else zero_point, (*rows, 1))
    acc = dense_accumulate(data.astype(np.int32) - points, weight, 0, op.weight_zero_points)
    return _f32_values(op, acc, operands)


@evaluates(DynamicConv2DOp)
def _conv2d(op: DynamicConv2DOp, operands: Arrays) -> Array:
    data, weight, _, zero_point, *_ = operands
    strides, dilation = (op.strides[0], op.strides[1]), (op.dilation[0], op.dilation[1])
    top, left, bottom, right = op.padding
    how = (op.weight_zero_points, strides, (top, left, bottom, right), dilation, op.groups)
    acc = conv2d_accumulate(data, weight, int(zero_point.reshape(())), *how)
    return _f32_values(op, acc, operands)


def _f32_values(op: DynamicConv2DOp | DynamicDenseOp, acc: Array, operands: Arrays) -> Array:
    _, _, scale, _, *bias = operands
    scales = scale.reshape(()) if scale.size == 1 else scale
    with np.errstate(all="ignore"):
        values, weight_scales = acc.astype(np.float32), np.array(op.weight_scales, dtype=np.float32)
        values = values * weight_scales * scales if op.scale_last else values * (scales * weight_scales)
        biased = values + bias[0] if bias else values
        return ACTIVATIONS[op.activation].in_kernel(biased, alpha=op.alpha)
