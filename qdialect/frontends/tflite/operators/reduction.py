"""Plans sums, means, products and extremes over axes, where extremes stand, CUMSUM and TOPK_V2."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product as every
from typing import Any

import numpy as np
import tflite

from qdialect import dialect as qnn
from qdialect.arithmetic import Multiplier, Rounding, folded_count_multiplier, quantize_multiplier
from qdialect.arithmetic.profiles import TFLITE
from qdialect.frontends.building.checks import axes_in, require, required
from qdialect.frontends.building.op_builder import Arithmetic, reduced_numbers
from qdialect.frontends.building.slices import Slice, take_slices
from qdialect.frontends.planning.reduction import order_key, reduced_shape, top_k
from qdialect.frontends.planning.tensors import mapping
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks, registry
from qdialect.frontends.tflite.operators.fixed_point import FixedPoint, clamped, f32_quotient, narrowed
from qdialect.ir._mlir import ir

# Sums, means and extremes over axes.

Axes = tuple[int, ...]
_EXTREMES = ("REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
_LARGEST = float(np.finfo(np.float32).max)
_BOUNDS = {"max": ("gt", -_LARGEST), "min": ("lt", _LARGEST)}


def reduction_of(operator: Operator) -> tuple[Tensor, Axes, bool]:
    """What is reduced, over which axes, distinct and ascending, and whether they stay as extents of 1."""
    keep_dims = operator.option("KeepDims")
    data, axes = checks.operands(operator, 2)
    rank = len(data.shape)
    listed = checks.integers(axes, "axes")
    distinct = tuple(sorted(set(axes_in(listed, rank))))
    require(len(distinct) >= 1 and 0 not in data.shape, "axes must name at least one dimension")
    return data, distinct, keep_dims


@registry.imports("SUM")
def _sum(operator: Operator) -> registry.Emission:
    """As the reference kernel sums `ui8`; it sums `i8` in 8 bits, which overflow, so those sum as `ui8` do."""
    return _rescaled(operator, qnn.SumOp, {"rounding": Rounding.FIXED32_DOUBLE, "multiplier": Multiplier.F64})


@registry.imports("MEAN")
def _mean(operator: Operator) -> registry.Emission:
    """The sum is rescaled by a factor that has the number of elements in it."""
    return _rescaled(operator, qnn.MeanOp, TFLITE.rescale)


def _rescaled(
    operator: Operator, op_class: type[qnn.SumOp | qnn.MeanOp], rescale: Mapping[str, Any]
) -> registry.Emission:
    data, axes, keep_dims = reduction_of(operator)
    output = checks.eight_bit_ends(operator, data)
    checks.check_rescale(data.scale, [1.0], output.scale, Multiplier.F64)
    return registry.built(
        op_class, data, element=output.element, axes=axes, keep_dims=keep_dims, **mapping(data, output), **rescale
    )


@registry.imports("REDUCE_MAX", "REDUCE_MIN")
def _extreme(operator: Operator) -> registry.Emission:
    """The quantized value of the extreme number is the extreme quantized value."""
    data, axes, keep_dims = reduction_of(operator)
    checks.same_quantization(operator, data)
    op_class = qnn.ReduceMaxOp if operator.kind == "REDUCE_MAX" else qnn.ReduceMinOp
    return registry.built(op_class, data, element=data.element, axes=axes, keep_dims=keep_dims)


@registry.imports("L2_NORMALIZATION")
def _l2_normalization(operator: Operator) -> registry.Building:
    """Along the last dimension, to quantized values of 1/128 around the middle."""
    (data,) = checks.operands(operator, 1)
    output = checks.eight_bit_ends(operator, data)
    checks.check_parameters(output, 1 / 128, 0 if output.element == "i8" else 128)
    emitter = yield
    zero_point = data.zero_point
    return emitter.build(qnn.L2NormalizeOp, emitter.value(data), element=output.element, input_zero_point=zero_point)


@registry.imports_f32(*_EXTREMES)
@registry.imports_integers(*_EXTREMES, "SUM")
def _numbers(operator: Operator) -> registry.Building:
    """Of numbers that stand for themselves."""
    data, axes, keep_dims = reduction_of(operator)
    kind = operator.kind.removeprefix("REDUCE_").lower()
    emitter = yield
    value = emitter.value(data)
    if data.element == "f32" and kind in _BOUNDS and not emitter.is_delegated:
        # The reference kernels begin with the farthest finite number, and NaN is not beyond it.
        (predicate, bound), s = _BOUNDS[kind], Arithmetic(emitter)
        value = s.select(s.compare(predicate, value, bound), value, bound)
    return reduced_numbers(emitter, kind, value, axes, keep_dims)


# Means and extremes of 16-bit values over axes.

_LARGEST_FACTOR = 2.0**30


@registry.imports_i16("MEAN")
def _mean_i16(operator: Operator) -> registry.Building:
    """The number of elements is part of the factor."""
    data, axes, keep_dims = reduction_of(operator)
    output = checks.output_of(operator)
    ratio = checks.sixteen_bit(data, "input").scale / output.scale
    require(ratio < _LARGEST_FACTOR, f"rescale factor must be in [0, 2^30), but got {ratio}")
    count = math.prod(data.shape[axis] for axis in axes)
    factor, bounds = FixedPoint(*folded_count_multiplier(ratio, count)), checks.quantized_range(output)
    emitter = yield
    s = Arithmetic(emitter)
    wide = s.resize(emitter.value(data), "i32")
    total = reduced_numbers(emitter, "sum", wide, axes, keep_dims)
    return narrowed(s, factor.scaled(s, total), bounds)


@registry.imports_i16("SUM")
def _sum_i16(operator: Operator) -> registry.Building:
    """Multiplied in float32, as by LiteRT's kernel; its reference kernel sums words in 8 bits, which overflow."""
    data, axes, keep_dims = reduction_of(operator)
    output = checks.output_of(operator)
    checks.check_rescale(checks.sixteen_bit(data, "input").scale, [1.0], output.scale, Multiplier.F64)
    emitter = yield
    s = Arithmetic(emitter)
    total = reduced_numbers(emitter, "sum", s.resize(emitter.value(data), "i32"), axes, keep_dims)
    number = s.op("arith.mulf", s.convert("arith.sitofp", total, "f32"), f32_quotient(data.scale, output.scale))
    how: dict[str, Any] = {"scales": (1.0,), "zero_points": (0,), "rounding": TFLITE.float_rounding}
    return emitter.build(qnn.QuantizeOp, number, element="i16", **how)


@registry.imports_i16("REDUCE_MAX", "REDUCE_MIN")
def _extreme_i16(operator: Operator) -> registry.Emission | registry.Building:
    """The quantized value of the extreme number is the extreme quantized value."""
    data, *_ = reduction_of(operator)
    checks.same_scale(checks.sixteen_bit(data, "input"), checks.output_of(operator))
    return _numbers(operator)


# REDUCE_PROD of quantized values: one factor after another, each product rescaled so that it stays small.

_MAX_FACTORS = 256
_LARGEST_WORD, _LARGEST_SHIFT = 0x7FFF, 7


@registry.imports("REDUCE_PROD")
def _product_of_bytes(operator: Operator) -> registry.Building:
    data, _ = checks.operands(operator, 2)
    output = checks.eight_bit_ends(operator, data)
    require(data.element == "i8", f"input must be i8, but got {data.element}")
    return _product(operator, data, output)


@registry.imports_i16("REDUCE_PROD")
def _product_of_words(operator: Operator) -> registry.Building:
    data, _ = checks.operands(operator, 2)
    return _product(operator, checks.sixteen_bit(data, "input"), checks.output_of(operator))


def _product(operator: Operator, data: Tensor, output: Tensor) -> registry.Building:
    """Every factor is a number over the root of the output's scale, so that the whole has that scale at the end."""
    _, axes, keep_dims = reduction_of(operator)
    ranges = [range(extent) if axis in axes else range(1) for axis, extent in enumerate(data.shape)]
    count = math.prod(map(len, ranges))
    require(count <= _MAX_FACTORS, f"product must have at most {_MAX_FACTORS} factors, but got {count}")
    # A multiplier of 16 bits and how far its products are shifted right (TFLite MultiplyByQuantizedMultiplier).
    real = data.scale / output.scale ** (1.0 / count)
    q, e = quantize_multiplier(real)
    require(e <= _LARGEST_SHIFT, f"rescale factor must be below 2^{_LARGEST_SHIFT}, but got {real}")
    factor = min((q + (1 << 15)) >> 16, _LARGEST_WORD), 15 - e
    emitter = yield
    s, value = Arithmetic(emitter), emitter.value(data)
    parts = (_at(emitter, value, data, axes, at) for at in every(*ranges))
    first, *others = (s.op("arith.addi", s.resize(part, "i64"), -data.zero_point) for part in parts)
    for other in others:
        first = _scaled(s, s.op("arith.muli", first, other), factor)
    result = s.op("arith.addi", _scaled(s, first, factor), output.zero_point)
    narrow = s.resize(clamped(s, result, checks.quantized_range(output)), output.element)
    return emitter.reshape(narrow, reduced_shape(data.shape, axes, keep_dims))


def _scaled(s: Arithmetic, value: ir.Value, factor: tuple[int, int]) -> ir.Value:
    """An i64 tensor rescaled to 32 bits, ties up."""
    word, shift = factor
    nudged = s.op("arith.addi", s.op("arith.muli", value, word), 1 << (shift - 1))
    return s.resize(s.resize(s.op("arith.shrsi", nudged, shift), "i32"), "i64")


def _at(emitter: registry.Emitter, value: ir.Value, data: Tensor, axes: Sequence[int], at: Sequence[int]) -> ir.Value:
    """The elements at one index of the reduced dimensions."""
    slices = [Slice(at[axis], 1, 1) if axis in axes else Slice(0, 1, extent) for axis, extent in enumerate(data.shape)]
    return take_slices(emitter, value, slices)


# ARG_MAX and ARG_MIN: of quantized values as one op, of other numbers by an extreme and what equals it.

_ARG_OPS = {"ARG_MAX": qnn.ArgMaxOp, "ARG_MIN": qnn.ArgMinOp}
_KNOWN = (*checks.EIGHT_BIT, "i1", "i16", "i32", "f32")


@registry.imports("ARG_MAX", "ARG_MIN")
def _arg(operator: Operator) -> registry.Emission:
    """The first of equal elements wins; the output's type is that of the index."""
    data, axes = checks.operands(operator, 2)
    output = operator.outputs[0]
    require(data.element in _KNOWN, f"input must be {', '.join(_KNOWN)}, but got {data.element}")
    # The option decides, not the type of the tensor.
    kind = operator.option("OutputType")
    wanted = required(
        {tflite.TensorType.INT32: "i32", tflite.TensorType.INT64: "i64"}.get(kind),
        f"output type must be i32 or i64, but got {kind}",
    )
    require(output.element == wanted, f"output must be {wanted}, but got {output.element}")
    axis = checks.axis_of(checks.integers(axes, "axis"), len(data.shape))
    if data.element not in checks.EIGHT_BIT:
        return lambda emitter: _first_extreme(emitter, operator.kind, data, axis, output)
    return registry.built(_ARG_OPS[operator.kind], data, element=output.element, axis=axis)


def _first_extreme(emitter: registry.Emitter, kind: str, data: Tensor, axis: int, output: Tensor) -> ir.Value:
    """The smallest index of an element that equals the extreme, for which a NaN is no candidate."""
    s, value = Arithmetic(emitter), emitter.value(data)
    if data.element == "f32":
        value = s.select(s.compare("eq", value, value), value, np.inf if kind == "ARG_MIN" else -np.inf)
    value = s.resize(value, "i16") if data.element == "i1" else value
    extreme = reduced_numbers(emitter, kind.removeprefix("ARG_").lower(), value, (axis,))
    extreme = emitter.broadcast(extreme, data.shape)
    extent = data.shape[axis]
    dtype = np.int32 if output.element == "i32" else np.int64
    along = np.arange(data.shape[axis], dtype=dtype).reshape(-1, *[1] * (len(data.shape) - axis - 1))
    index = emitter.broadcast(emitter.constant(along), data.shape)
    found = s.select(s.compare("eq", value, extreme), index, extent)
    first = reduced_numbers(emitter, "min", found, (axis,), keep_dims=False)
    return s.select(s.compare("lt", first, extent), first, 0)


# CUMSUM and TOPK_V2, which depend on the place of an element in its row.

_SUMMED, _RANKED = ("f32", "i32", "i64"), ("f32", "i8", "ui8", "i32", "i64")


@registry.imports("CUMSUM")
def _cumsum(operator: Operator) -> registry.Emission:
    is_exclusive, is_reverse = operator.options("Exclusive", "Reverse")
    data, axis = checks.operands(operator, 2)
    require(data.element in _SUMMED, f"input must be {', '.join(_SUMMED)}, but got {data.element}")
    checks.same_content(data, operator.outputs[0])
    how = {"exclusive": bool(is_exclusive), "reverse": bool(is_reverse)}
    along = checks.axis_of(checks.integers(axis, "axis"), len(data.shape))
    return registry.built(qnn.CumSumOp, data, element=data.element, axis=along, **how)


@registry.imports("TOPK_V2")
def _top_k(operator: Operator) -> registry.Building:
    """The k largest of each row in descending order, equal ones in their own, and where they stand."""
    data, count = checks.operands_of_many(operator, 2)
    require(data.element in _RANKED, f"input must be {', '.join(_RANKED)}, but got {data.element}")
    counts, found = checks.integers(count, "k"), len(operator.outputs)
    require(found == 2, f"must have 2 outputs, but got {found}")
    checks.same_content(data, operator.outputs[0])
    element = operator.outputs[1].element
    require(element in ("i32", "i64"), f"indices must be i32 or i64, but got {element}")
    extent = data.shape[-1] if data.shape else 0
    holds = len(counts) == 1 and 1 <= counts[0] <= extent
    require(holds, f"k must be in [1, {extent}], but got {list(counts)}")
    rows, k = math.prod(data.shape[:-1]), counts[0]
    emitter = yield
    value = emitter.reshape(emitter.value(data), (rows, extent))
    # Integers in the order of the numbers.
    s, bits = Arithmetic(emitter, is_unsigned=data.element == "ui8"), emitter.without_sign(value)
    first = top_k(emitter, order_key(s, bits, "i64" if data.element == "i64" else "i32"), 1, k)
    s, starts = Arithmetic(emitter), np.arange(rows, dtype=np.int64).reshape(rows, 1) * extent
    starts = np.ascontiguousarray(np.broadcast_to(starts, (rows, k)))
    at = s.op("arith.addi", first, emitter.constant(starts))
    flat = emitter.reshape(value, (rows * extent,))
    values = emitter.build(qnn.DynamicGatherOp, flat, at, element=data.element, axis=0)
    shape = (*data.shape[:-1], k)
    return [emitter.reshape(values, shape), emitter.reshape(s.resize(first, element), shape)]
