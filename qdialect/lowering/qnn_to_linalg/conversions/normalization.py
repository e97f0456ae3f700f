"""L2 and layer normalization: sums of each row, its inverse root, and a map over the elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from qdialect.arithmetic import quantize_multiplier
from qdialect.dialect import L2NormalizeOp
from qdialect.dialect.i16_ops import I16LayerNormOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.ir.strides import row_major
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import Emit, MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.kernels.normalization import (
    doubling_high,
    emit_root,
    emit_root_shift,
    emit_rounded_shift,
    shift_left,
)
from qdialect.lowering.qnn_to_linalg.kernels.reduction import Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.lowering.qnn_to_linalg.program.storage import Storage, signed_shift

# L2 normalization: the squares of each row add up, and every element is multiplied by the row's inverse root.

_ROWS = 4
# Quantized values lie around 128, and 2^7 of them make one.
_MIDDLE, _ROOT_BITS = 128, 7


@lowers(L2NormalizeOp)
def _l2_normalize(lowering: GraphLowering, op: L2NormalizeOp) -> None:
    shape, kernel = shape_of(op.input.type), Kernel(lowering.program)
    data, output = lowering.slot(op.input), lowering.result(op.output)
    source, target = _operand(kernel, "data", data, shape), _operand(kernel, "output", output, shape)
    point = op.input_zero_point + signed_shift(op.input.type)

    total, root, shift = (_number_per_row(lowering, kernel, name, shape) for name in ("total", "root", "shift"))
    kept, inputs = shape[:-1], [Reduced(replace(source, strides=source.strides[:-1]), (1,))]
    rows = replace(total, strides=total.strides[:-1])
    fold = _squares(kernel.number("zero_point", point, "i32"))
    emit_reduction(
        kernel, Reduction(kept, shape[-1:], inputs, [], rows, fold, lambda _, acc, __: acc, TILE_LANES, _ROWS)
    )
    for number, emit_number in ((root, emit_root), (shift, emit_root_shift)):
        emit_map(kernel, (*kept, 1), [total], number, _of_one(emit_number), TILE_LANES)
    scaled = _scaled_by_root(op, kernel.number("wide_zero_point", point, "i64"))
    emit_map(kernel, shape, [source, root, shift], target, scaled, TILE_LANES)
    lowering.program.call(kernel, op.operation.name)


def _operand(kernel: Kernel, name: str, slot: BufferSlot, shape: tuple[int, ...]) -> MapOperand:
    return MapOperand(kernel.slot(name, slot), dim_strides(shape, slot.storage), slot.storage.origin)


def _number_per_row(lowering: GraphLowering, kernel: Kernel, name: str, shape: tuple[int, ...]) -> MapOperand:
    """A new tensor of one i32 for each row, which does not move along it."""
    sizes = (*shape[:-1], 1)
    strides = row_major(sizes)[:-1]
    count = prod(sizes)
    slot = lowering.program.buffer(Storage((1, 1, 1, count), "i32", count))
    return MapOperand(kernel.slot(name, slot), (*strides, 0))


def _squares(zero_point: Value) -> Fold:
    def emit(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        offset = body.subtract(body.cast("arith.extui", values[0], "i32"), zero_point)
        return body.add(acc, body.multiply(offset, offset))

    return Fold("i32", 0, emit, lambda body, a, b: body.add(a, b))


def _of_one(emit_number: Callable[[Body, Value], Value]) -> Emit:
    return lambda body, values: emit_number(body, values[0])


def _scaled_by_root(op: L2NormalizeOp, zero_point: Value) -> Emit:
    """Stored quantized values of either type lie around 128."""

    def emit(body: Body, values: Sequence[Value]) -> Value:
        offset = body.subtract(body.cast("arith.extui", values[0], "i64"), zero_point)
        root, shift = (body.cast("arith.extui", value, "i64") for value in values[1:])
        left, right = _shifts(body, shift) if signed_shift(op.input.type) else (body.constant(_ROOT_BITS, "i64"), shift)
        shifted_up = body.binary("arith.shli", offset, left)
        scaled = emit_rounded_shift(body, doubling_high(body, shifted_up, root), right)
        quantized = body.add(scaled, body.constant(_MIDDLE, "i64"))
        quantized = body.clamp(quantized, body.constant(0, "i64"), body.constant(255, "i64"))
        return body.narrow(quantized)

    return emit


def _shifts(body: Body, shift: Value) -> tuple[Value, Value]:
    """Where the factor 128 is part of the exponent: what of it is left over to shift up, and what to shift down."""
    root_bits, zero = body.constant(_ROOT_BITS, "i64"), body.constant(0, "i64")
    left = body.binary("arith.maxsi", body.subtract(root_bits, shift), zero)
    right = body.binary("arith.maxsi", body.subtract(shift, root_bits), zero)
    return left, right


# Layer normalization of 16-bit rows: two sums of each row, its mean and inverse root, and a map over the elements.

_FRACTION_BITS, _GATE_BITS = 10, 12
_WORD = (-(2**15), 2**15 - 1)
# By which every number but zero is saturated.
_LARGEST_SHIFT = 31


@lowers(I16LayerNormOp)
def _i16_layer_norm(lowering: GraphLowering, op: I16LayerNormOp) -> None:
    shape, kernel = shape_of(op.input.type), Kernel(lowering.program)
    kept, count = shape[:-1], shape[-1]
    source = _operand(kernel, "data", lowering.slot(op.input), shape)
    weight, bias = (
        _vector(kernel, name, lowering.slot(value), len(shape))
        for name, value in (("weight", op.weight), ("bias", op.bias))
    )
    target = _operand(kernel, "output", lowering.result(op.output), shape)
    total, squares = (_per_row(lowering, kernel, name, shape, "i64") for name in ("total", "squares"))
    mean, variance, root, shift = (
        _per_row(lowering, kernel, name, shape, "i32") for name in ("mean", "variance", "root", "shift")
    )
    inputs = [Reduced(replace(source, strides=source.strides[:-1]), (1,))]
    for rows, fold in ((total, _sum()), (squares, _sum_of_squares())):
        result = replace(rows, strides=rows.strides[:-1])
        reduction = Reduction(kept, (count,), inputs, [], result, fold, lambda _, acc, __: acc, TILE_LANES, _ROWS)
        emit_reduction(kernel, reduction)
    one = (*kept, 1)
    emit_map(kernel, one, [total], mean, _mean(count), TILE_LANES)
    emit_map(kernel, one, [squares, mean], variance, _variance(count, op.variance_guard), TILE_LANES)
    emit_map(kernel, one, [variance], root, lambda body, values: emit_root(body, values[0]), TILE_LANES)
    emit_map(kernel, one, [variance], shift, lambda body, values: emit_root_shift(body, values[0]), TILE_LANES)
    emit_map(kernel, shape, [source, mean, root, shift, weight, bias], target, _normalized(op.scale), TILE_LANES)
    lowering.program.call(kernel, op.operation.name)


def _vector(kernel: Kernel, name: str, slot: BufferSlot, rank: int) -> MapOperand:
    """A tensor of one entry for each index of the last of `rank` dimensions."""
    return MapOperand(kernel.slot(name, slot), (*(0,) * (rank - 1), 1), slot.storage.origin)


def _per_row(lowering: GraphLowering, kernel: Kernel, name: str, shape: tuple[int, ...], element: str) -> MapOperand:
    """A new tensor of one number for each row, which does not move along it."""
    sizes = (*shape[:-1], 1)
    count = prod(sizes)
    slot = lowering.program.buffer(Storage((1, 1, 1, count), element, count))
    return MapOperand(kernel.slot(name, slot), (*row_major(sizes)[:-1], 0))


def _sum() -> Fold:
    def emit(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        return body.add(acc, body.cast("arith.extsi", values[0], "i64"))

    return Fold("i64", 0, emit, lambda body, a, b: body.add(a, b))


def _sum_of_squares() -> Fold:
    def emit(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        wide = body.cast("arith.extsi", values[0], "i32")
        return body.add(acc, body.cast("arith.extsi", body.multiply(wide, wide), "i64"))

    return Fold("i64", 0, emit, lambda body, a, b: body.add(a, b))


def _mean(count: int) -> Emit:
    """With 10 fractional bits, truncated."""

    def emit(body: Body, values: Sequence[Value]) -> Value:
        scaled = body.multiply(values[0], body.constant(1 << _FRACTION_BITS, "i64"))
        return body.cast("arith.trunci", body.binary("arith.divsi", scaled, body.constant(count, "i64")), "i32")

    return emit


def _variance(count: int, guard: int) -> Emit:
    """Truncated; below one it is `guard`."""

    def emit(body: Body, values: Sequence[Value]) -> Value:
        squares, mean = values[0], body.cast("arith.extsi", values[1], "i64")
        one = body.constant(1 << 2 * _FRACTION_BITS, "i64")
        scaled = body.multiply(squares, body.constant((1 << 2 * _FRACTION_BITS) // count, "i64"))
        quotient = body.binary("arith.divsi", body.subtract(scaled, body.multiply(mean, mean)), one)
        is_small = body.compare("slt", quotient, body.constant(1, "i64"))
        return body.cast("arith.trunci", body.select(is_small, body.constant(guard, "i64"), quotient), "i32")

    return emit


def _normalized(scale: float) -> Emit:
    factor, exponent = quantize_multiplier(scale)

    def emit(body: Body, values: Sequence[Value]) -> Value:
        x, mean, root, shift, weight, bias = (body.cast("arith.extsi", v, "i64") if v.bits < 64 else v for v in values)
        distance = body.subtract(body.multiply(x, body.constant(1 << _FRACTION_BITS, "i64")), mean)
        rescaled = emit_rounded_shift(body, doubling_high(body, distance, root), shift)
        product = body.cast("arith.trunci", body.add(body.multiply(rescaled, weight), bias), "i32")
        fewer = _rounded(body, body.cast("arith.extsi", product, "i64"))
        total = _scaled(body, fewer, factor, min(exponent + _GATE_BITS, _LARGEST_SHIFT))
        low, high = (body.constant(bound, "i64") for bound in _WORD)
        return body.cast("arith.trunci", body.clamp(total, low, high), "i16")

    return emit


def _rounded(body: Body, value: Value) -> Value:
    """``value / 2^10``, ties away from zero, by truncation."""
    half, one = body.constant(1 << (_FRACTION_BITS - 1), "i64"), body.constant(1 << _FRACTION_BITS, "i64")
    is_positive = body.compare("sgt", value, body.constant(0, "i64"))
    moved = body.select(is_positive, body.add(value, half), body.subtract(value, half))
    return body.binary("arith.divsi", moved, one)


def _scaled(body: Body, value: Value, factor: int, exponent: int) -> Value:
    """``value * factor * 2^(exponent - 31)``, rounded twice."""
    shifted = shift_left(body, value, exponent) if exponent > 0 else value
    high = doubling_high(body, shifted, body.constant(factor, "i64"))
    return emit_rounded_shift(body, high, body.constant(-exponent, "i64")) if exponent < 0 else high
