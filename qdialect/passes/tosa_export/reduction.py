"""Exports pools, reductions over axes, and indices of extremes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic import Division, real_multiplier, requantize_parameters
from qdialect.arithmetic.multipliers import mean_parameters
from qdialect.dialect.pool_ops import PoolOp
from qdialect.dialect.type_constraints import element_of, range_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa_export import builder
from qdialect.passes.tosa_export.builder import Array, apply, const, create, entry, filled, select
from qdialect.passes.tosa_export.contraction import exact_window
from qdialect.passes.tosa_export.export import Export, exports, require, shape_of_result, sign_of
from qdialect.passes.tosa_export.scaling import Requantization, centered, held

# AVG_POOL2D divides as `half_away_centered` does.  Other divisions are those of sums, which a depthwise convolution
# with ones gives: INTDIV truncates, and half of the count before it rounds away from zero.


def _clamped(op: PoolOp, value: ir.Value) -> ir.Value:
    sign, bounds = sign_of(op.data.type), (op.output_min, op.output_max)
    return value if bounds == range_of(op.output.type) else builder.clamp(value, *(bound - sign for bound in bounds))


@exports(qnn.MaxPool2DOp)
def _max_pool2d(export: Export, op: qnn.MaxPool2DOp) -> ir.Value:
    data, pad = exact_window(export.value(op.data), op.kernel, op.strides, op.padding)
    window = {"kernel": op.kernel, "stride": op.strides, "pad": pad}
    return _clamped(op, create("max_pool2d", [data], shape_of_result(op), "i8", **window))


@exports(qnn.AvgPool2DOp)
def _avg_pool2d(export: Export, op: qnn.AvgPool2DOp) -> ir.Value:
    if op.division is not Division.HALF_AWAY_CENTERED or op.count_include_pad:
        return _divided_sums(export, op)
    data, pad = exact_window(export.value(op.data), op.kernel, op.strides, op.padding)
    points = [entry(op.zero_point - sign_of(op.data.type), "i8")] * 2
    window = {"kernel": op.kernel, "stride": op.strides, "pad": pad, "acc_type": "i32"}
    return _clamped(op, create("avg_pool2d", [data, *points], shape_of_result(op), "i8", **window))


def _divided_sums(export: Export, op: qnn.AvgPool2DOp) -> ir.Value:
    """Sums of values less their center, over the count, plus the center."""
    center = op.zero_point if op.division is Division.HALF_AWAY_CENTERED else 0
    inside = _elements(op)
    whole = np.full_like(inside, op.kernel[0] * op.kernel[1])
    channels = shape_of(op.data.type)[3]
    data, pad = exact_window(export.value(op.data), op.kernel, op.strides, op.padding)
    operands = [data, const(np.ones((*op.kernel, channels, 1), np.int8)), const(np.zeros(channels, np.int32))]
    operands += [entry(center - sign_of(op.data.type), "i8"), entry(0, "i8")]
    window = {"pad": pad, "stride": op.strides, "dilation": (1, 1), "acc_type": "i32"}
    total = create("depthwise_conv2d", operands, shape_of_result(op), "i32", **window)
    if op.count_include_pad and op.zero_point != center:
        total = apply("add", total, (whole - inside) * (op.zero_point - center))
    count = whole if op.count_include_pad else inside
    mean = _quotient(total, count, truncates=op.division is Division.TRUNCATE)
    if center:
        mean = apply("add", mean, center)
    return held(builder.clamp(mean, op.output_min, op.output_max), element_of(op.output.type))


def _quotient(total: ir.Value, count: Array, *, truncates: bool) -> ir.Value:
    if truncates:
        return apply("intdiv", total, count)
    magnitude = apply("intdiv", apply("add", apply("abs", total), count // 2), count)
    return select(apply("greater", filled(0, total), total), apply("negate", magnitude), magnitude)


def _elements(op: qnn.AvgPool2DOp) -> Array:
    """[1, OH, OW, 1]: how many elements of the data each window has."""
    _, height, width, _ = shape_of_result(op)
    counts: list[Array] = []
    for i, windows in enumerate((height, width)):
        first = np.arange(windows) * op.strides[i] - op.padding[i]
        last = np.minimum(first + op.kernel[i], shape_of(op.data.type)[1 + i])
        counts.append(last - np.maximum(first, 0))
    return np.multiply.outer(*counts)[np.newaxis, :, :, np.newaxis]


@exports(qnn.MeanOp, qnn.SumOp)
def _over_axes(export: Export, op: qnn.MeanOp | qnn.SumOp) -> ir.Value:
    """The sum of values less their zero point, times a multiplier that has the count of a mean in it."""
    shape = shape_of(op.input.type)
    count = int(np.prod([shape[axis] for axis in op.axes]))
    wide = centered(export.value(op.input), np.array([op.input_zero_point - sign_of(op.input.type)]))
    total = builder.reduce("sum", wide, op.axes, keep_dims=op.keep_dims)
    real = real_multiplier(op.input_scale, [1.0], op.output_scale, op.multiplier)
    params = (
        mean_parameters(op.rounding, real, count)
        if isinstance(op, qnn.MeanOp)
        else requantize_parameters(op.rounding, real)
    )
    bound = export.bound(op.input, op.input_zero_point) * count
    how = Requantization(params, op.rounding, bound, op.output_zero_point, range_of(op.output.type))
    return how.bytes_of(total, element_of(op.output.type))


Reduction = qnn.F32MaxOp | qnn.F32MinOp | qnn.IntMaxOp | qnn.IntMinOp | qnn.IntSumOp | qnn.ReduceMaxOp | qnn.ReduceMinOp


@exports(qnn.F32MaxOp, qnn.F32MinOp, qnn.IntMaxOp, qnn.IntMinOp, qnn.IntSumOp, qnn.ReduceMaxOp, qnn.ReduceMinOp)
def _reduction(export: Export, op: Reduction) -> ir.Value:
    """Numbers and zero have the same extremes in TOSA, except that a NaN of any sign is both."""
    # The names of the ops end with it.
    kind = op.operation.name[-3:]
    value = export.value(op.input)
    if isinstance(op, qnn.IntSumOp) and element_of(op.output.type) != element_of(op.input.type):
        value = centered(value, np.array([-sign_of(op.input.type)]))
    if isinstance(op, qnn.F32ExtremeOp) and op.nan_as_zero:
        value = builder.select(apply("equal", value, value), value, filled(0.0, value))
    found = builder.reduce(kind, value, op.axes, keep_dims=op.keep_dims)
    is_from_zero = isinstance(op, qnn.F32ExtremeOp) and op.from_zero
    return apply(f"{kind}imum", found, 0.0) if is_from_zero else found


@exports(qnn.F32ProdOp)
def _product(export: Export, op: qnn.F32ProdOp) -> ir.Value:
    """The reduced dimensions as one, the last, whose elements are taken in row-major order."""
    rows, extents = _rows(export, op)
    count = math.prod(shape_of(rows.type)[len(extents) :])
    found = builder.reduce("product", builder.reshape(rows, [*extents, count]), [len(extents)], keep_dims=True)
    return builder.reshape(found, shape_of_result(op))


@exports(qnn.F32SumOp)
def _sum(export: Export, op: qnn.F32SumOp) -> ir.Value:
    """By sums in order alone, those of each partial sum too; a sum starts from zero."""
    rows, extents = _rows(export, op)
    count, columns = op.partial_sums, shape_of(rows.type)[-1]
    if count == 1:
        total = _in_order(rows, extents)
    else:
        whole = columns // count * count
        total = _in_order(_in_order(_columns(rows, 0, whole), extents, count), extents)
        if whole < columns:
            total = apply("add", total, _in_order(_columns(rows, whole, columns), extents))
    # A sum of minus zeros is plus zero.
    return builder.reshape(apply("add", total, 0.0), shape_of_result(op))


def _rows(export: Export, op: qnn.F32SumOp | qnn.F32ProdOp) -> tuple[ir.Value, list[int]]:
    """The input with the reduced dimensions last, and the extents of the others."""
    value = export.value(op.input)
    shape = shape_of(value.type)
    kept = [i for i in range(len(shape)) if i not in op.axes]
    return builder.transpose(value, [*kept, *op.axes]), [shape[i] for i in kept]


def _columns(rows: ir.Value, begin: int, end: int) -> ir.Value:
    """Some of the last dimension."""
    *outer, _ = shape_of(rows.type)
    return builder.slice_of(rows, [*(0 for _ in outer), begin], [*outer, end - begin])


def _in_order(rows: ir.Value, extents: Sequence[int], lanes: int = 1) -> ir.Value:
    """[extents..., 1, lanes]: sums of every so many elements of each row, in row-major order.

    The dimension is not the last, along which an importer, ours too, may add in any order that is fast.
    """
    count = math.prod(shape_of(rows.type)[len(extents) :]) // lanes
    return builder.reduce("sum", builder.reshape(rows, [*extents, count, lanes]), [len(extents)], keep_dims=True)


@exports(qnn.ArgMaxOp, qnn.ArgMinOp)
def _arg(export: Export, op: qnn.ArgMaxOp | qnn.ArgMinOp) -> ir.Value:
    """Of the complement for the smallest; the last of equal ones is the first of the reversed row."""
    value = export.value(op.input)
    require(element_of(op.output.type) == "i32", f"result must be i32, but got {element_of(op.output.type)}")
    shape = shape_of(value.type)
    if isinstance(op, qnn.ArgMinOp):
        value = apply("bitwise_not", value)
    if op.last:
        value = create("reverse", [value], shape, "i8", axis=op.axis)
    rest = [extent for i, extent in enumerate(shape) if i != op.axis]
    found = create("argmax", [value], rest, "i32", axis=op.axis)
    if op.last:
        found = apply("sub", filled(shape[op.axis] - 1, found), found)
    return builder.reshape(found, shape_of_result(op))
