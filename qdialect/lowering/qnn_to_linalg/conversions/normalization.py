"""L2 and layer normalization: sums of each row, its inverse root, and a map over the elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from qdialect.arithmetic.fixed_point_functions import (
    inverse_root,
    layer_normalized,
    root_shift,
    row_mean,
    row_variance,
    scaled_by_root,
)
from qdialect.dialect import L2NormalizeOp
from qdialect.dialect.i16_ops import I16LayerNormOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.ir.views import row_major
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import Emit, MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.kernels.reduction import Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.lowering.qnn_to_linalg.program.storage import Storage, signed_shift

# L2 normalization: the squares of each row add up, and every element is multiplied by the row's inverse root.

_ROWS = 4
# Quantized values lie around 128.
_MIDDLE = 128


@lowers(L2NormalizeOp)
def _l2_normalize(lowering: GraphLowering, op: L2NormalizeOp) -> None:
    shape, kernel = shape_of(op.input.type), Kernel(lowering.program)
    data, output = lowering.slot(op.input), lowering.result(op.output)
    source, target = _operand(kernel, "data", data, shape), _operand(kernel, "output", output, shape)
    point = op.input_zero_point + signed_shift(op.input.type)

    total, root, shift = (_per_row(lowering, kernel, name, shape, "i32") for name in ("total", "root", "shift"))
    kept, inputs = shape[:-1], [Reduced(replace(source, strides=source.strides[:-1]), (1,))]
    rows = replace(total, strides=total.strides[:-1])
    fold = _squares(kernel.number("zero_point", point, "i32"))
    emit_reduction(
        kernel, Reduction(kept, shape[-1:], inputs, [], rows, fold, lambda _, acc, __: acc, TILE_LANES, _ROWS)
    )
    for number, emit_number in ((root, inverse_root), (shift, root_shift)):
        emit_map(kernel, (*kept, 1), [total], number, _of_one(emit_number), TILE_LANES)
    scaled = _scaled_by_root(op, kernel.number("wide_zero_point", point, "i64"))
    emit_map(kernel, shape, [source, root, shift], target, scaled, TILE_LANES)
    lowering.program.call(kernel, op.operation.name)


def _operand(kernel: Kernel, name: str, slot: BufferSlot, shape: tuple[int, ...]) -> MapOperand:
    return MapOperand(kernel.slot(name, slot), dim_strides(shape, slot.storage), slot.storage.origin)


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
        scaled = scaled_by_root(body, offset, root, shift, is_signed=bool(signed_shift(op.input.type)))
        quantized = body.add(scaled, body.constant(_MIDDLE, "i64"))
        quantized = body.clamp(quantized, body.constant(0, "i64"), body.constant(255, "i64"))
        return body.narrow(quantized)

    return emit


# Layer normalization of 16-bit rows: two sums of each row, its mean and inverse root, and a map over the elements.


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
    emit_map(kernel, one, [total], mean, lambda body, v: row_mean(body, v[0], count), TILE_LANES)
    of_squares = _variance(count, op.variance_guard)
    emit_map(kernel, one, [squares, mean], variance, of_squares, TILE_LANES)
    emit_map(kernel, one, [variance], root, _of_one(inverse_root), TILE_LANES)
    emit_map(kernel, one, [variance], shift, _of_one(root_shift), TILE_LANES)
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


def _variance(count: int, guard: int) -> Emit:
    def emit(body: Body, values: Sequence[Value]) -> Value:
        return row_variance(body, values[0], body.cast("arith.extsi", values[1], "i64"), count, guard)

    return emit


def _normalized(scale: float) -> Emit:
    def emit(body: Body, values: Sequence[Value]) -> Value:
        x, mean, root, shift, weight, bias = (body.cast("arith.extsi", value, "i64") for value in values)
        return layer_normalized(body, x, mean, root, shift, weight, bias, scale)

    return emit
