"""Converts convolutions and matrix products, whose accumulators a rescale usually reads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from qdialect import dialect as qnn
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa.conversion import (
    Conversion,
    Plan,
    UnsupportedError,
    converts,
    padding,
    require,
    result_element,
    window,
)
from qdialect.passes.tosa.elementwise import apply, reshaped, spread
from qdialect.passes.tosa.rescale import plan_of, scaling_of, sole_rescale

# Convolutions and matrix products of f32 values, in the order of `qnn.f32_conv2d` and `qnn.f32_matmul`.


def padded(value: ir.Value, before: tuple[int, ...], after: tuple[int, ...]) -> ir.Value:
    """An f32 image with zeros around it: before and after height and width."""
    if not any((*before, *after)):
        return value
    return qnn.build(qnn.PadOp, value, element="f32", low=(0, *before, 0), high=(0, *after, 0), value=0).output


def _with_bias(conversion: Conversion, op: ir.Operation, product: ir.Value) -> ir.Value:
    """A bias has one entry for each channel, or one for all."""
    return apply("arith.addf", product, spread(conversion.value(op.operands[2]), shape_of(product.type)))


def f32_convolution(conversion: Conversion, op: ir.Operation, weight: ir.Value, groups: int) -> ir.Value:
    """A ``tosa.conv2d`` or ``tosa.depthwise_conv2d``; `weight` is [OC, KH, KW, IC / groups]."""
    top, left, bottom, right = padding(op)
    data = padded(conversion.value(op.operands[0]), (top, left), (bottom, right))
    strides, dilation = window(op, "stride"), window(op, "dilation")
    product = qnn.build(qnn.F32Conv2DOp, data, weight, element="f32", strides=strides, dilation=dilation, groups=groups)
    return _with_bias(conversion, op, product.output)


def f32_transposed_convolution(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """A convolution with the turned weight of the data, between whose elements there are zeros."""
    weight = conversion.array(op.operands[1], "weight")
    top, bottom, left, right = window(op, "out_pad")
    data = _stretched(conversion.value(op.operands[0]), window(op, "stride"))
    height, width = weight.shape[1] - 1, weight.shape[2] - 1
    require(min(top, bottom) >= -height and min(left, right) >= -width, "out_pad must not cut off more than the kernel")
    data = padded(data, (height + top, width + left), (height + bottom, width + right))
    turned = constant(np.ascontiguousarray(weight[:, ::-1, ::-1]))
    return _with_bias(conversion, op, qnn.build(qnn.F32Conv2DOp, data, turned, element="f32").output)


def _stretched(value: ir.Value, strides: tuple[int, ...]) -> ir.Value:
    """An image with ``stride - 1`` zeros between its elements."""
    batch, height, width, channels = shape_of(value.type)
    down, across = strides
    apart = reshaped(value, (batch, height, 1, width, 1, channels))
    high = (0, 0, down - 1, 0, across - 1, 0)
    filled = qnn.build(qnn.PadOp, apart, element="f32", low=(0,) * 6, high=high, value=0).output
    joined = reshaped(filled, (batch, height * down, width * across, channels))
    size = (batch, (height - 1) * down + 1, (width - 1) * across + 1, channels)
    return qnn.build(qnn.SliceOp, joined, element="f32", begin=(0,) * 4, size=size, strides=(1,) * 4).output


def f32_product(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Products of batches of matrices; `rhs` may be one for all."""
    batches = math.prod(shape_of(rhs.type)[:-2])
    if batches == 1:
        rhs = reshaped(rhs, shape_of(rhs.type)[-2:])
    return qnn.build(qnn.F32MatmulOp, lhs, rhs, element="f32").output


# Convolutions and matrix products, whose accumulators a rescale usually reads.


@converts("tosa.conv2d")
def _conv2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    weight = conversion.value(op.operands[1])
    return _convolution(conversion, op, weight, groups=1)


@converts("tosa.depthwise_conv2d")
def _depthwise_conv2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Weights [KH, KW, C, M] are those of C groups of M results."""
    weight = conversion.array(op.operands[1], "weight").transpose(2, 3, 0, 1)
    channels, multiplier, height, width = weight.shape
    weight = constant(np.ascontiguousarray(weight).reshape(channels * multiplier, height, width, 1))
    return _convolution(conversion, op, weight, groups=channels)


def _convolution(conversion: Conversion, op: ir.Operation, weight: ir.Value, groups: int) -> ir.Value:
    if _is_float(op):
        return f32_convolution(conversion, op, weight, groups)
    channels = shape_of(weight.type)[0]
    convolution = qnn.build(
        qnn.Conv2DOp,
        conversion.value(op.operands[0]),
        weight,
        _bias(conversion, op, channels),
        element="i32",
        strides=window(op, "stride"),
        padding=padding(op),
        dilation=window(op, "dilation"),
        groups=groups,
        weight_zero_points=(conversion.zero_point(op.operands[4], "weight_zp"),),
        **_data(conversion, op, op.operands[3]),
    )
    return _with_bias_of_run_time(conversion, op, convolution.output)


@converts("tosa.transpose_conv2d")
def _transpose_conv2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Negative padding of the result cuts rows and columns off; what is added at its end holds the bias."""
    if _is_float(op):
        return f32_transposed_convolution(conversion, op)
    top, bottom, left, right = window(op, "out_pad")
    weight, strides = conversion.value(op.operands[1]), window(op, "stride")
    # Rows added before hold the bias, too: they are those of zeros before the data, as many as reach so far.
    rows = [-(-max(count, 0) // stride) for count, stride in zip((top, left), strides, strict=True)]
    cut = [count * stride - low for count, stride, low in zip(rows, strides, (top, left), strict=True)]
    convolution = qnn.build(
        qnn.ConvTranspose2DOp,
        _with_rows_before(conversion, op, rows),
        weight,
        _bias(conversion, op, shape_of(weight.type)[0]),
        element="i32",
        strides=strides,
        padding=(*cut, max(-bottom, 0), max(-right, 0)),
        output_padding=(max(bottom, 0), max(right, 0)),
        weight_zero_points=(conversion.zero_point(op.operands[4], "weight_zp"),),
        **_data(conversion, op, op.operands[3]),
    )
    return _with_bias_of_run_time(conversion, op, convolution.output)


def _with_rows_before(conversion: Conversion, op: ir.Operation, rows: list[int]) -> ir.Value:
    """The data with rows and columns of its zero point before it."""
    data = conversion.value(op.operands[0])
    if not any(rows):
        return data
    zero_point = conversion.zero_point(op.operands[3], "input_zp")
    low = (0, *rows, 0)
    return qnn.build(qnn.PadOp, data, element=element_of(data.type), low=low, high=(0,) * 4, value=zero_point).output


@converts("tosa.matmul", "tosa.matmul_t")
def _matmul(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """A constant right-hand side of one batch is the weight of a dense op; MATMUL_T has its columns as rows."""
    left, right = (conversion.value(operand) for operand in list(op.operands)[:2])
    has_rows = op.name == "tosa.matmul_t"
    if not _is_float(op) and conversion.is_constant(op.operands[1]) and shape_of(right.type)[0] == 1:
        weight = conversion.array(op.operands[1], "b")[0]
        weight = constant(np.ascontiguousarray(weight if has_rows else weight.T))
        return qnn.build(qnn.DenseOp, left, weight, None, element="i32", **_product_parameters(conversion, op)).output
    if has_rows:
        right = qnn.build(qnn.TransposeOp, right, element=element_of(right.type), permutation=(0, 2, 1)).output
    if _is_float(op):
        return f32_product(left, right)
    return qnn.build(qnn.MatMulOp, left, right, None, element="i32", **_product_parameters(conversion, op)).output


def _product_parameters(conversion: Conversion, op: ir.Operation) -> dict[str, Any]:
    weight_zero_point = conversion.zero_point(op.operands[3], "b_zp")
    return {**_data(conversion, op, op.operands[2]), "weight_zero_points": (weight_zero_point,)}


def _is_float(op: ir.Operation) -> bool:
    return result_element(op) == "f32"


def _bias(conversion: Conversion, op: ir.Operation, channels: int) -> ir.Value | None:
    """A constant bias; None for one of run time."""
    if not conversion.is_constant(op.operands[2]):
        return None
    bias = conversion.array(op.operands[2], "bias")
    require(bias.dtype == np.int32, f"bias must be of i32, but got {bias.dtype.name}")
    return constant(np.ascontiguousarray(np.broadcast_to(bias.ravel(), (channels,))))


def _with_bias_of_run_time(conversion: Conversion, op: ir.Operation, sums: ir.Value) -> ir.Value:
    if conversion.is_constant(op.operands[2]):
        return sums
    return apply("arith.addi", sums, spread(conversion.value(op.operands[2]), shape_of(sums.type)))


def _data(conversion: Conversion, op: ir.Operation, zero_point: ir.Value) -> dict[str, Any]:
    """Parameters of the data, and the weights' scales that the rescale of the accumulators wants."""
    plan = _plan(conversion, op)
    return {
        "input_scale": plan.input_scale,
        "input_zero_point": conversion.zero_point(zero_point, "input_zp"),
        "weight_scales": plan.weight_scales,
    }


def _plan(conversion: Conversion, op: ir.Operation) -> Plan:
    scale, rescale = conversion.scale(op.operands[0]), sole_rescale(op.results[0])
    if rescale is not None:
        try:
            plan = plan_of(scale, scaling_of(conversion, rescale), conversion.scale(rescale.results[0]))
            conversion.plans[op.results[0]] = plan
            return plan
        except UnsupportedError:
            # The rescale reports this itself.
            pass
    return Plan(scale, (1 / scale,), 1.0)
