"""Operands of convolutions and matrix products of quantized numbers; zero points that are known at run time alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qdialect.dialect import MatMulOp, PadOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.building.checks import Array, check_scale, require
from qdialect.frontends.onnx.operators.registry import AccumulatorBias, Call, Quantized
from qdialect.frontends.planning import tensors as planning
from qdialect.frontends.planning.contraction import LARGEST_BIAS, accumulator_scales
from qdialect.frontends.planning.elementwise import broadcast_shape
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value, channels_last
from qdialect.frontends.planning.tensors import EIGHT_BIT, Constant
from qdialect.ir._mlir import ir

# How much scales differ that are the same product, rounded in another order.
_SAME = 1e-6


def data_of(data: Quantized, elements: Sequence[str] = EIGHT_BIT) -> Quantized:
    """Data that a contraction can read, of one of `elements`."""
    parameters = data.parameters
    require(parameters.element in elements, f"input must be {' or '.join(elements)}, but got {parameters.element}")
    check_scale(parameters.scale, "input scale")
    return data


def bias_of(
    call: Call,
    index: int,
    data: planning.Quantized,
    scales: tuple[float, ...],
    channels: int,
    factor: float | None = None,
) -> Array | None:
    """Input `index`: i32 in units of the accumulators, or f32 values.

    It is i32 where an integer kernel of ONNX Runtime reads it so, or where its scale is the accumulators' and leaves
    space for the sums; else it is f32 values, which count `factor` times.
    """
    tensor = call.optional(index)
    if tensor is None:
        return None
    if isinstance(tensor, Constant):
        values = tensor.array
    else:
        source = call.quantized(index)
        require(source.values.data is not None, "bias must be constant")
        assert source.values.data is not None
        is_whole = factor is None and _counts_accumulators(source, accumulator_scales(data, scales))
        values = source.values.data if is_whole else np.asarray(source.f32_values())
    fits = values.size == 1 or (values.size == channels == values.shape[-1])
    require(fits, f"bias must have {channels} entries along its last dimension, but got {list(values.shape)}")
    flat = np.broadcast_to(values.ravel(), (channels,))
    if values.dtype == np.int32:
        return flat
    require(values.dtype == np.float32, f"bias must be i32 or f32, but got {values.dtype}")
    return flat if factor is None else np.float32(factor) * flat


def _counts_accumulators(bias: planning.Quantized, wanted: Array) -> bool:
    """Whether quantized values are units of the accumulators, whose scales are `wanted`."""
    if isinstance(bias, AccumulatorBias):
        return True
    values = bias.values.data
    if bias.values.element != "i32" or values is None or any(bias.zero_points):
        return False
    own = np.array(bias.scales)
    fits = own.size == 1 or wanted.size in (1, own.size)
    has_space = bool(np.all(np.abs(values.astype(np.int64)) <= LARGEST_BIAS // 2))
    return fits and has_space and np.allclose(own, wanted, _SAME, 0)


# Integer products whose zero points are known at run time: the compensation is computed next to the product.

_UNTOUCHED = {"input_scale": 1.0, "input_zero_point": 0, "weight_scales": (1.0,), "weight_zero_points": (0,)}


def run_time_zero_point(call: Call, index: int, operand: Value) -> Value | None:
    """Input `index` where it is a zero point of `operand` that is known at run time only."""
    point = call.optional(index)
    if not isinstance(point, Value):
        return None
    require(point.element == operand.element, f"zero point must be {operand.element}, but got {point.element}")
    return point


def single(point: Value) -> Value:
    """A zero point that must have one entry."""
    require(point.shape in ((), (1,)), f"zero point must have 1 entry, but got {list(point.shape)}")
    return point


def corrected(call: Call, sums: Value, zero_point: Value, channels: Array) -> Value:
    """Products with quantized values, less ``zero_point * channels``: those with what the quantized values stand for.

    `channels` are the sums of the weights of each channel, the last dimension of `sums` as they are held; differences
    wrap as sums do.
    """

    def emit(emitter: Emitter) -> Emitted:
        totals = emitter.constant(channels.astype(np.int32))
        point = _widened(emitter, emitter.reshape(emitter.to_channels_first(single(zero_point)), ()))
        lost = emitter.upstream("arith.muli", totals, emitter.broadcast(point, channels.shape))
        held, is_channels_last = emitter.either(sums)
        return emitter.upstream("arith.subi", held, emitter.broadcast(lost, shape_of(held.type))), is_channels_last

    return call.plan.compute(call.name, sums.shape, "i32", emit)


def padded(call: Call, data: Value, zero_point: Value, before: tuple[int, ...], after: tuple[int, ...]) -> Value:
    """Channels-first `data` with elements of its zero point around each image."""
    rank = len(data.shape)
    size = tuple(extent + low + high for extent, low, high in zip(data.shape[2:], before, after, strict=True))
    outside = np.full((1, *size, 1), -1, np.int8)
    outside[(0, *(slice(low, low + extent) for low, extent in zip(before, data.shape[2:], strict=True)))] = 0
    shape = (*data.shape[:2], *size)

    def emit(emitter: Emitter) -> Emitted:
        ring = {"low": (0, *before, 0), "high": (0, *after, 0), "value": 0}
        inside = emitter.build(PadOp, emitter.last(data), element=data.element, **ring)
        point = emitter.without_sign(emitter.reshape(emitter.to_channels_first(single(zero_point)), ()))
        around = emitter.upstream("arith.andi", emitter.constant(outside), emitter.broadcast(point, outside.shape))
        last = tuple(shape[axis] for axis in channels_last(rank))
        both = emitter.upstream("arith.ori", emitter.without_sign(inside), emitter.broadcast(around, last))
        return both if data.element == "i8" else emitter.convert("tensor.bitcast", both, data.element), True

    return call.plan.compute(call.name, shape, data.element, emit)


def product(call: Call, left: Value, right: Value, a: Value | None, b: Value | None) -> Value:
    """``sum (A - a) (B - b)`` of [..., M, K] and [..., K, N]: ``sum AB - a sum B - b sum A + K a b``, modulo 2^32.

    The zero point a has one entry, b one or one for each column; None is zero.
    """
    for name, operand in (("input", left), ("right operand", right)):
        holds = operand.element in EIGHT_BIT and len(operand.shape) >= 2
        found = f"{operand.element} of {list(operand.shape)}"
        require(holds, f"{name} must be matrices of i8 or ui8, but got {found}")
    rows, depth, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    require(depth == right.shape[-2], f"input must have a last extent of {right.shape[-2]}, but got {depth}")
    shape = (*broadcast_shape(left.shape[:-2], right.shape[:-2]), rows, columns)
    if b is not None:
        entries = math.prod(b.shape)
        require(entries in (1, columns), f"zero point must have 1 or {columns} entries, but got {entries}")

    def emit(emitter: Emitter) -> Emitted:
        lhs, rhs = emitter.to_channels_first(left), emitter.to_channels_first(right)
        total = _sums(emitter, lhs, rhs)
        below = None if a is None else _spread(emitter, single(a), shape)
        across = None if b is None else _spread(emitter, b, shape)
        if below is not None:
            column_sums = _sums(emitter, emitter.constant(np.ones((1, depth), np.uint8)), rhs)
            total = _less(emitter, total, below, emitter.broadcast(column_sums, shape))
        if across is not None:
            row_sums = _sums(emitter, lhs, emitter.constant(np.ones((depth, 1), np.int8)))
            total = _less(emitter, total, across, emitter.broadcast(row_sums, shape))
        if below is not None and across is not None:
            count = emitter.broadcast(emitter.constant(np.array(-depth, np.int32)), shape)
            total = _less(emitter, total, emitter.upstream("arith.muli", count, below), across)
        return total, False

    return call.plan.compute(call.name, shape, "i32", emit)


def _sums(emitter: Emitter, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    return emitter.build(MatMulOp, lhs, rhs, None, element="i32", **_UNTOUCHED)


def _less(emitter: Emitter, total: ir.Value, *factors: ir.Value) -> ir.Value:
    return emitter.upstream("arith.subi", total, emitter.upstream("arith.muli", *factors))


def _spread(emitter: Emitter, point: Value, shape: tuple[int, ...]) -> ir.Value:
    """A zero point of one entry, or of one for each column, as i32 of `shape`."""
    wide, entries = _widened(emitter, emitter.to_channels_first(point)), math.prod(point.shape)
    return emitter.broadcast(emitter.reshape(wide, () if entries == 1 else (entries,)), shape)


def _widened(emitter: Emitter, quantized: ir.Value) -> ir.Value:
    """An 8-bit integer as i32."""
    widen = "arith.extui" if element_of(quantized.type) == "ui8" else "arith.extsi"
    return emitter.convert(widen, emitter.without_sign(quantized), "i32")
