"""Convolutions and matrix products of f32 values, in the order of `qnn.f32_conv2d` and `qnn.f32_matmul`."""

from __future__ import annotations

import math

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32Conv2DOp, F32MatmulOp, PadOp, SliceOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import shape_of
from qdialect.passes.tosa.conversion import Conversion, padding, require, window
from qdialect.passes.tosa.upstream import apply, reshaped, spread


def padded(value: ir.Value, before: tuple[int, ...], after: tuple[int, ...]) -> ir.Value:
    """An f32 image with zeros around it: before and after height and width."""
    if not any((*before, *after)):
        return value
    return build(PadOp, value, element="f32", low=(0, *before, 0), high=(0, *after, 0), value=0).output


def _with_bias(conversion: Conversion, op: ir.Operation, product: ir.Value) -> ir.Value:
    """A bias has one entry for each channel, or one for all."""
    return apply("arith.addf", product, spread(conversion.value(op.operands[2]), shape_of(product.type)))


def convolution(conversion: Conversion, op: ir.Operation, weight: ir.Value, groups: int) -> ir.Value:
    """A ``tosa.conv2d`` or ``tosa.depthwise_conv2d``; `weight` is [OC, KH, KW, IC / groups]."""
    top, left, bottom, right = padding(op)
    data = padded(conversion.value(op.operands[0]), (top, left), (bottom, right))
    strides, dilation = window(op, "stride"), window(op, "dilation")
    product = build(F32Conv2DOp, data, weight, element="f32", strides=strides, dilation=dilation, groups=groups)
    return _with_bias(conversion, op, product.output)


def transposed_convolution(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """A convolution with the turned weight of the data, between whose elements there are zeros."""
    weight = conversion.array(op.operands[1], "weight")
    top, bottom, left, right = window(op, "out_pad")
    data = _stretched(conversion.value(op.operands[0]), window(op, "stride"))
    height, width = weight.shape[1] - 1, weight.shape[2] - 1
    require(min(top, bottom) >= -height and min(left, right) >= -width, "out_pad must not cut off more than the kernel")
    data = padded(data, (height + top, width + left), (height + bottom, width + right))
    turned = constant(np.ascontiguousarray(weight[:, ::-1, ::-1]))
    return _with_bias(conversion, op, build(F32Conv2DOp, data, turned, element="f32").output)


def _stretched(value: ir.Value, strides: tuple[int, ...]) -> ir.Value:
    """An image with ``stride - 1`` zeros between its elements."""
    batch, height, width, channels = shape_of(value.type)
    down, across = strides
    apart = reshaped(value, (batch, height, 1, width, 1, channels))
    high = (0, 0, down - 1, 0, across - 1, 0)
    filled = build(PadOp, apart, element="f32", low=(0,) * 6, high=high, value=0).output
    joined = reshaped(filled, (batch, height * down, width * across, channels))
    size = (batch, (height - 1) * down + 1, (width - 1) * across + 1, channels)
    return build(SliceOp, joined, element="f32", begin=(0,) * 4, size=size, strides=(1,) * 4).output


def product(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Products of batches of matrices; `rhs` may be one for all."""
    batches = math.prod(shape_of(rhs.type)[:-2])
    if batches == 1:
        rhs = reshaped(rhs, shape_of(rhs.type)[-2:])
    return build(F32MatmulOp, lhs, rhs, element="f32").output
