"""Exports convolutions and matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.arithmetic.block_weights import BlockWeights
from qdialect.arithmetic.choices import BlockActivations
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa_export import builder
from qdialect.passes.tosa_export.builder import apply, const, create, entry
from qdialect.passes.tosa_export.export import SIGN, Export, exports, require, shape_of_result, sign_of

# CONV2D wants windows that end where the padded data does: padding, then rows and columns of the data, that no window
# reads are left out.

Contraction = qnn.Conv2DOp | qnn.ConvTranspose2DOp | qnn.DenseOp


def weight_of(export: Export, op: Contraction) -> tuple[ir.Value, int]:
    """The weight as it is held, and its one zero point; several are taken off where the differences are bytes."""
    points = np.array(op.weight_zero_points)
    if (points == points[0]).all():
        return export.value(op.weight), int(points[0]) - sign_of(op.weight.type)
    weight = export.constant(op.weight, "weight with several weight_zero_points").astype(np.int64)
    offsets = weight - points.reshape(-1, *[1] * (weight.ndim - 1))
    fits = offsets.min() >= -SIGN and offsets.max() < SIGN
    require(fits, f"weight_zero_points must leave offsets of 8 bits, but got {offsets.min()} to {offsets.max()}")
    return const(offsets.astype(np.int8)), 0


def bias_of(export: Export, op: Contraction, channels: int) -> ir.Value:
    """The bias, zeros where there is none."""
    return const(np.zeros(channels, np.int32)) if op.bias is None else export.value(op.bias)


def note_bound(export: Export, op: Contraction) -> None:
    """Remember how large accumulators may become, where weight and bias are constants."""
    weight = constant_value(op.weight)
    bias = np.zeros(1) if op.bias is None else constant_value(op.bias)
    if weight is None or bias is None:
        return
    points = np.array(op.weight_zero_points).reshape(-1, *[1] * (weight.ndim - 1))
    magnitudes = np.abs(weight.astype(np.int64) - points).reshape(len(weight), -1).sum(axis=1)
    low, high = ELEMENT_RANGES[element_of(op.data.type)]
    offset = max(abs(low - op.input_zero_point), abs(high - op.input_zero_point))
    found = int((magnitudes * offset + np.abs(bias.astype(np.int64))).max())
    require(found < 2**31, f"accumulators must have 32 bits, but may reach {found}")
    export.bounds[op.output] = found


def _points(op: Contraction | qnn.MatMulOp, weight_zero_point: int) -> list[ir.Value]:
    return [entry(op.input_zero_point - sign_of(op.data.type), "i8"), entry(weight_zero_point, "i8")]


def exact_window(
    value: ir.Value, extents: Sequence[int], strides: Sequence[int], padding: Sequence[int]
) -> tuple[ir.Value, list[int]]:
    """An image and its padding, top, bottom, left and right, such that windows of `extents` end where both end."""
    size, ends = list(shape_of(value.type)), list(padding[2:])
    for i in (0, 1):
        unread = (size[1 + i] + padding[i] + padding[2 + i] - extents[i]) % strides[i]
        size[1 + i] -= max(unread - ends[i], 0)
        ends[i] = max(ends[i] - unread, 0)
    return builder.slice_of(value, (0,) * 4, size), [padding[0], ends[0], padding[1], ends[1]]


@exports(qnn.Conv2DOp)
def _conv2d(export: Export, op: qnn.Conv2DOp) -> ir.Value:
    note_bound(export, op)
    data, channels = export.value(op.data), shape_of(op.weight.type)[0]
    weight, zero_point = weight_of(export, op)
    kernel = shape_of(weight.type)[1:3]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, op.dilation, strict=True)]
    data, pad = exact_window(data, extents, op.strides, op.padding)
    window = {"pad": pad, "stride": op.strides, "dilation": op.dilation, "acc_type": "i32"}
    points = _points(op, zero_point)
    bias, shape = bias_of(export, op, channels), shape_of_result(op)
    if 1 < op.groups == shape_of(op.data.type)[3]:
        operands = [data, _depthwise(weight, op.groups), bias, *points]
        return create("depthwise_conv2d", operands, shape, "i32", **window)
    parts = [
        create("conv2d", [*operands, *points], (*shape[:3], channels // op.groups), "i32", **window)
        for operands in _groups(data, weight, bias, op.groups)
    ]
    return builder.concatenate(parts, 3)


def _depthwise(weight: ir.Value, depth: int) -> ir.Value:
    """Weights [C * M, KH, KW, 1] as [KH, KW, C, M]."""
    channels, *kernel, _ = shape_of(weight.type)
    return builder.transpose(builder.reshape(weight, (depth, channels // depth, *kernel)), (2, 3, 0, 1))


def _groups(data: ir.Value, weight: ir.Value, bias: ir.Value, groups: int) -> list[list[ir.Value]]:
    """Data, weight and bias of each group."""

    def part(value: ir.Value, axis: int, index: int) -> ir.Value:
        size = list(shape_of(value.type))
        size[axis] //= groups
        begin = [index * size[axis] if i == axis else 0 for i in range(len(size))]
        return builder.slice_of(value, begin, size)

    return [[part(data, 3, i), part(weight, 0, i), part(bias, 0, i)] for i in range(groups)]


@exports(qnn.ConvTranspose2DOp)
def _conv_transpose2d(export: Export, op: qnn.ConvTranspose2DOp) -> ir.Value:
    """The padding cuts rows and columns off the whole result."""
    note_bound(export, op)
    weight, zero_point = weight_of(export, op)
    weight = _dilated(weight, op.dilation, zero_point)
    data, channels = export.value(op.data), shape_of(op.weight.type)[0]
    points, (below, beyond) = _points(op, zero_point), op.output_padding
    batch, *size, _ = shape_of(data.type)
    extents = zip(size, op.strides, shape_of(weight.type)[1:3], op.output_padding, strict=True)
    shape = (batch, *((n - 1) * s + k + extra for n, s, k, extra in extents), channels // op.groups)
    window = {"out_pad": (0, below, 0, beyond), "stride": op.strides, "acc_type": "i32"}
    parts = [
        create("transpose_conv2d", [*operands, *points], shape, "i32", **window)
        for operands in _groups(data, weight, bias_of(export, op, channels), op.groups)
    ]
    return builder.slice_of(builder.concatenate(parts, 3), (0, *op.padding[:2], 0), shape_of_result(op))


def _dilated(weight: ir.Value, dilation: Sequence[int], zero_point: int) -> ir.Value:
    """A weight with its zero point between its rows and columns: TOSA's transposed convolution has no dilation."""
    channels, height, width, depth = shape_of(weight.type)
    apart = builder.reshape(weight, (channels, height, 1, width, 1, depth))
    high = (0, 0, dilation[0] - 1, 0, dilation[1] - 1, 0)
    if any(high):
        apart = builder.pad(apart, (0,) * 6, high, zero_point)
    joined = builder.reshape(apart, (channels, height * dilation[0], width * dilation[1], depth))
    size = (channels, (height - 1) * dilation[0] + 1, (width - 1) * dilation[1] + 1, depth)
    return builder.slice_of(joined, (0,) * 4, size)


@exports(qnn.DenseOp)
def _dense(export: Export, op: qnn.DenseOp) -> ir.Value:
    """A convolution of pixels, of which each row is one."""
    note_bound(export, op)
    weight, zero_point = weight_of(export, op)
    channels, depth = shape_of(weight.type)
    rows = int(np.prod(shape_of(op.data.type)[:-1]))
    operands = [builder.reshape(export.value(op.data), (rows, 1, 1, depth))]
    operands += [builder.reshape(weight, (channels, 1, 1, depth)), bias_of(export, op, channels)]
    operands += _points(op, zero_point)
    window = {"pad": (0,) * 4, "stride": (1, 1), "dilation": (1, 1), "acc_type": "i32"}
    return builder.reshape(create("conv2d", operands, (rows, 1, 1, channels), "i32", **window), shape_of_result(op))


@exports(qnn.MatMulOp)
def _matmul(export: Export, op: qnn.MatMulOp) -> ir.Value:
    points = np.array(op.weight_zero_points)
    require(bool((points == points[0]).all()), f"weight_zero_points must be equal, but got {points.tolist()}")
    zero_points = _points(op, int(points[0]) - sign_of(op.weight.type))
    product = _product(op, export.value(op.data), export.value(op.weight), zero_points, "i32")
    if op.bias is not None:
        product = apply("add", product, builder.of_rank(export.value(op.bias), 3))
    return builder.reshape(product, shape_of_result(op))


def _product(
    op: qnn.MatMulOp | qnn.F32MatmulOp, left: ir.Value, right: ir.Value, zero_points: list[ir.Value], element: str
) -> ir.Value:
    """MATMUL, whose operands are as many matrices."""
    *batches, rows, columns = shape_of_result(op)
    depth, count = shape_of(right.type)[-2], math.prod(batches)
    left = builder.reshape(builder.tile(left, (*batches, rows, depth)), (count, rows, depth))
    right = builder.reshape(builder.tile(right, (*batches, depth, columns)), (count, depth, columns))
    return create("matmul", [left, right, *zero_points], (count, rows, columns), element)


@exports(qnn.F32MatmulOp)
def _f32_matmul(export: Export, op: qnn.F32MatmulOp) -> ir.Value:
    require(op.bias is None, "bias must be added behind the sum")
    zero_points = [entry(0.0, "f32"), entry(0.0, "f32")]
    product = _product(op, export.value(op.data), export.value(op.matrix), zero_points, "f32")
    return builder.reshape(product, shape_of_result(op))


@exports(qnn.BlockDenseOp)
def _block_dense(export: Export, op: qnn.BlockDenseOp) -> ir.Value:
    """By weights that are f32 constants, as TOSA has them."""
    found = f"activations must be f32, but got {op.activations}"
    require(op.activations is BlockActivations.F32, found)
    matrix, rows = f32_weights(export, op).T, math.prod(shape_of(op.data.type)[:-1])
    left, right = builder.reshape(export.value(op.data), (1, rows, len(matrix))), const(matrix[np.newaxis].copy())
    operands = [left, right, entry(0.0, "f32"), entry(0.0, "f32")]
    return builder.reshape(create("matmul", operands, (1, rows, matrix.shape[1]), "f32"), shape_of_result(op))


def f32_weights(export: Export, op: qnn.BlockDenseOp | qnn.BlockGatherOp) -> NDArray[np.float32]:
    """The f32 values of packed weights."""
    weight, scales = export.constant(op.weight, "weight"), export.constant(op.scales, "scales")
    points = None if op.zero_points is None else export.constant(op.zero_points, "zero_points")
    return BlockWeights.unpacked(weight, scales, points, op.bits, op.block, op.depth).values()


@exports(qnn.F32Conv2DOp)
def _f32_conv2d(export: Export, op: qnn.F32Conv2DOp) -> ir.Value:
    kernel, depth = shape_of(op.weight.type)[1:3], shape_of(op.data.type)[3]
    require(op.groups in (1, depth), f"groups must be 1 or {depth}, but got {op.groups}")
    require(op.bias is None, "bias must be added behind the sum")
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, op.dilation, strict=True)]
    data, pad = exact_window(export.value(op.data), extents, op.strides, (0,) * 4)
    window = {"pad": pad, "stride": op.strides, "dilation": op.dilation, "acc_type": "f32"}
    weight, channels = export.value(op.weight), shape_of(op.weight.type)[0]
    rest = [const(np.zeros(channels, np.float32)), entry(0.0, "f32"), entry(0.0, "f32")]
    if op.groups == 1:
        return create("conv2d", [data, weight, *rest], shape_of_result(op), "f32", **window)
    return create("depthwise_conv2d", [data, _depthwise(weight, depth), *rest], shape_of_result(op), "f32", **window)
