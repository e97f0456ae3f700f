"""Evaluates reductions over axes, of plain integers too, running sums and the largest elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.arithmetic import (
    IntArray,
    Multiplier,
    QuantizedArray,
    QuantParams,
    Rounding,
    real_multiplier,
    requantize,
    requantize_parameters,
)
from qdialect.arithmetic.fixed_point_functions import inverse_roots, scaled_by_root
from qdialect.arithmetic.machine import NUMPY
from qdialect.dialect import (
    ArgMaxOp,
    ArgMinOp,
    CumSumOp,
    IntMaxOp,
    IntMinOp,
    IntProdOp,
    IntSumOp,
    L2NormalizeOp,
    ReduceMaxOp,
    ReduceMinOp,
    SumOp,
    TopKOp,
)
from qdialect.dialect.type_constraints import range_of
from qdialect.reference.evaluators import Array, Arrays, evaluates, last_axis

# Reductions over axes other than means.


def arg_max(values: QuantizedArray, axis: int, keep_dims: bool, last: bool) -> IntArray:
    """Index along `axis` of the largest value, int64; of equal ones the first, or the last with `last`.

    TFLite ARG_MAX takes the first, ONNX ArgMax the one that `select_last_index` names.
    """
    if not last:
        return np.argmax(values, axis=axis, keepdims=keep_dims)
    return values.shape[axis] - 1 - np.argmax(np.flip(values, axis), axis=axis, keepdims=keep_dims)


def arg_min(values: QuantizedArray, axis: int, keep_dims: bool, last: bool) -> IntArray:
    """`arg_max` of the quantized values in reverse order."""
    return arg_max(-values.astype(np.int64), axis, keep_dims, last)


def sum_over(
    values: QuantizedArray,
    axes: Sequence[int],
    keep_dims: bool,
    source: QuantParams,
    output: QuantParams,
    lo: int,
    hi: int,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """requantize(sum of (x - z_x) over `axes`) with M = s_x / s_y, clamped to [lo, hi], int64.

    With `fixed32_double` and `f64` this is TFLite's reference SUM of unsigned quantized values.
    """
    total = (values.astype(np.int64) - source.zero_point).sum(axis=tuple(axes), keepdims=keep_dims)
    params = requantize_parameters(rounding, real_multiplier(source.scale, [1.0], output.scale, multiplier))
    return requantize(total, params, output.zero_point, lo, hi, rounding)


def l2_normalize(values: QuantizedArray, zero_point: int) -> IntArray:
    """TFLite L2_NORMALIZATION along the last axis: 128 * (x - z_x) times the fixed-point 1 / sqrt(sum of squares).

    Quantized values of scale 1/128, around 128 or 0, int64.
    """
    info = np.iinfo(values.dtype.name)
    offsets = values.astype(np.int64) - zero_point
    totals = (offsets**2).sum(axis=-1, keepdims=True)
    is_signed = info.min < 0
    scaled = scaled_by_root(NUMPY, offsets, *inverse_roots(totals), is_signed=is_signed)
    return np.clip(scaled + (0 if is_signed else 128), info.min, info.max)


# Evaluators of the reductions over axes.


evaluates(ArgMaxOp)(lambda op, x: arg_max(x[0], op.axis, op.keep_dims, op.last))
evaluates(ArgMinOp)(lambda op, x: arg_min(x[0], op.axis, op.keep_dims, op.last))


@evaluates(SumOp)
def _sum(op: SumOp, operands: Arrays) -> Array:
    source = QuantParams(op.input_scale, op.input_zero_point)
    output = QuantParams(op.output_scale, op.output_zero_point)
    bounds = range_of(op.output.type)
    return sum_over(operands[0], op.axes, op.keep_dims, source, output, *bounds, op.rounding, op.multiplier)


evaluates(ReduceMaxOp, IntMaxOp)(lambda op, x: x[0].max(axis=op.axes, keepdims=op.keep_dims))
evaluates(ReduceMinOp, IntMinOp)(lambda op, x: x[0].min(axis=op.axes, keepdims=op.keep_dims))
evaluates(L2NormalizeOp)(lambda op, x: l2_normalize(x[0], op.input_zero_point))


# Evaluators of the reductions of plain integers.


evaluates(IntSumOp)(lambda op, x: x[0].sum(axis=op.axes, keepdims=op.keep_dims, dtype=x[0].dtype))
evaluates(IntProdOp)(lambda op, x: x[0].prod(axis=op.axes, keepdims=op.keep_dims, dtype=x[0].dtype))


# Evaluators of running sums and of the largest elements.


@evaluates(CumSumOp)
def _cumsum(op: CumSumOp, operands: Arrays) -> Array:
    def sums(rows: Array) -> Array:
        rows = rows[..., ::-1] if op.reverse else rows
        with np.errstate(all="ignore"):
            total: Array = np.add.accumulate(rows, axis=-1, dtype=rows.dtype)
        if op.exclusive:
            total = np.concatenate([np.zeros_like(total[..., :1]), total[..., :-1]], axis=-1)
        return total[..., ::-1] if op.reverse else total

    return last_axis(operands[0], op.axis, sums)


@evaluates(TopKOp)
def _top_k(op: TopKOp, operands: Arrays) -> Array:
    # The complement turns the order around and, unlike the negative, overflows nowhere.
    return last_axis(operands[0], op.axis, lambda rows: np.argsort(~rows, axis=-1, kind="stable")[..., : op.count])
