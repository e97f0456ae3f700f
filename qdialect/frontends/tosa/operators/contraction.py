"""Converts convolutions and matrix products, whose accumulators a rescale usually reads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from qdialect import dialect as qnn
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import UnsupportedError, require
from qdialect.frontends.building.slices import framed, spaced
from qdialect.frontends.tosa.operators.conversion import Conversion, Plan, converts, padding, result_element, window
from qdialect.frontends.tosa.operators.rescale import plan_of, scaling_of, sole_rescale
from qdialect.ir._mlir import ir


def _with_bias(conversion: Conversion, op: ir.Operation, product: ir.Value) -> ir.Value:
    """A bias has one entry for each channel, or one for all."""
    return conversion.f32("addf", product, conversion.value(op.operands[2]))


def f32_convolution(conversion: Conversion, op: ir.Operation, weight: ir.Value, groups: int) -> ir.Value:
    """A ``tosa.conv2d`` or ``tosa.depthwise_conv2d``; `weight` is [OC, KH, KW, IC / groups]."""
    top, left, bottom, right = padding(op)
    data = framed(conversion, conversion.value(op.operands[0]), (0, top, left, 0), (0, bottom, right, 0))
    how: dict[str, Any] = {"strides": window(op, "stride"), "dilation": window(op, "dilation"), "groups": groups}
    return _with_bias(conversion, op, conversion.build(qnn.F32Conv2DOp, data, weight, element="f32", **how))


def f32_transposed_convolution(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """A convolution with the turned weight of the data, between whose elements there are zeros."""
    weight, (down, across) = conversion.array(op.operands[1], "weight"), window(op, "stride")
    top, bottom, left, right = window(op, "out_pad")
    height, width = weight.shape[1] - 1, weight.shape[2] - 1
    require(min(top, bottom) >= -height and min(left, right) >= -width, "out_pad must not cut off more than the kernel")
    data = spaced(conversion, conversion.value(op.operands[0]), (1, down, across, 1))
    # Zeros behind the last element are there already, one fewer than the stride.
    after = (0, height + bottom + 1 - down, width + right + 1 - across, 0)
    data = framed(conversion, data, (0, height + top, width + left, 0), after)
    turned = conversion.constant(weight[:, ::-1, ::-1])
    return _with_bias(conversion, op, conversion.build(qnn.F32Conv2DOp, data, turned, element="f32"))


@converts("tosa.conv2d")
def _conv2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return _convolution(conversion, op, conversion.value(op.operands[1]), groups=1)


@converts("tosa.depthwise_conv2d")
def _depthwise_conv2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Weights [KH, KW, C, M] are those of C groups of M results."""
    weight = conversion.array(op.operands[1], "weight").transpose(2, 3, 0, 1)
    channels, multiplier, height, width = weight.shape
    weight = conversion.constant(weight.reshape(channels * multiplier, height, width, 1))
    return _convolution(conversion, op, weight, groups=channels)


def _convolution(conversion: Conversion, op: ir.Operation, weight: ir.Value, groups: int) -> ir.Value:
    if _is_float(op):
        return f32_convolution(conversion, op, weight, groups)
    channels = shape_of(weight.type)[0]
    convolution = conversion.build(
        qnn.Conv2DOp,
        conversion.value(op.operands[0]),
        weight,
        _bias(conversion, op, channels),
        element="i32",
        strides=window(op, "stride"),
        padding=padding(op),
        dilation=window(op, "dilation"),
        groups=groups,
        **_parameters(conversion, op, 3, "weight_zp"),
    )
    return _with_bias_of_run_time(conversion, op, convolution)


@converts("tosa.transpose_conv2d")
def _transpose_conv2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Negative padding of the result cuts rows and columns off; what is added at its end holds the bias."""
    if _is_float(op):
        return f32_transposed_convolution(conversion, op)
    top, bottom, left, right = window(op, "out_pad")
    weight, strides = conversion.value(op.operands[1]), window(op, "stride")
    # Rows added before hold the bias, too: they are those of zeros before the data, as many as reach so far.
    rows = [-(-max(count, 0) // stride) for count, stride in zip((top, left), strides, strict=True)]
    zero_point = conversion.zero_point(op.operands[3], "input_zp")
    cut = [count * stride - low for count, stride, low in zip(rows, strides, (top, left), strict=True)]
    convolution = conversion.build(
        qnn.ConvTranspose2DOp,
        framed(conversion, conversion.value(op.operands[0]), (0, *rows, 0), (0,) * 4, fill=zero_point),
        weight,
        _bias(conversion, op, shape_of(weight.type)[0]),
        element="i32",
        strides=strides,
        padding=(*cut, max(-bottom, 0), max(-right, 0)),
        output_padding=(max(bottom, 0), max(right, 0)),
        **_parameters(conversion, op, 3, "weight_zp"),
    )
    return _with_bias_of_run_time(conversion, op, convolution)


@converts("tosa.matmul", "tosa.matmul_t")
def _matmul(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """A constant right-hand side of one batch is the weight of a dense op; MATMUL_T has its columns as rows."""
    left, right = (conversion.value(operand) for operand in list(op.operands)[:2])
    has_rows = op.name == "tosa.matmul_t"
    if not _is_float(op) and conversion.is_constant(op.operands[1]) and shape_of(right.type)[0] == 1:
        weight = conversion.array(op.operands[1], "b")[0]
        weight = conversion.constant(weight if has_rows else weight.T)
        return conversion.build(
            qnn.DenseOp, left, weight, None, element="i32", **_parameters(conversion, op, 2, "b_zp")
        )
    if has_rows:
        right = conversion.transpose(right, (0, 2, 1))
    if _is_float(op):
        # One matrix may be for all batches.
        shape = shape_of(right.type)
        right = right if math.prod(shape[:-2]) > 1 else conversion.reshape(right, shape[-2:])
        return conversion.build(qnn.F32MatmulOp, left, right, element="f32")
    return conversion.build(qnn.MatMulOp, left, right, None, element="i32", **_parameters(conversion, op, 2, "b_zp"))


def _is_float(op: ir.Operation) -> bool:
    return result_element(op) == "f32"


def _bias(conversion: Conversion, op: ir.Operation, channels: int) -> ir.Value | None:
    """A constant bias; None for one of run time."""
    if not conversion.is_constant(op.operands[2]):
        return None
    bias = conversion.array(op.operands[2], "bias")
    require(bias.dtype == np.int32, f"bias must be of i32, but got {bias.dtype.name}")
    return conversion.constant(np.broadcast_to(bias.ravel(), (channels,)))


def _with_bias_of_run_time(conversion: Conversion, op: ir.Operation, sums: ir.Value) -> ir.Value:
    if conversion.is_constant(op.operands[2]):
        return sums
    bias = conversion.broadcast(conversion.value(op.operands[2]), shape_of(sums.type))
    return conversion.upstream("arith.addi", sums, bias)


def _parameters(conversion: Conversion, op: ir.Operation, first: int, weight_name: str) -> dict[str, Any]:
    """Zero points, the operands from `first` on, and the weights' scales that the rescale of the accumulators wants."""
    weight_zero_point = conversion.zero_point(op.operands[first + 1], weight_name)
    plan = _plan(conversion, op)
    return {
        "input_scale": plan.input_scale,
        "input_zero_point": conversion.zero_point(op.operands[first], "input_zp"),
        "weight_scales": plan.weight_scales,
        "weight_zero_points": (weight_zero_point,),
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
