"""L2 normalization: the squares of each row add up, and every element is multiplied by the row's inverse root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from qdialect.dialect import L2NormalizeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.kernels.elementwise import Emit, MapOperand, emit_map
from qdialect.lowering.kernels.inverse_root import emit_root, emit_root_shift, emit_rounded_shift
from qdialect.lowering.kernels.normalize import doubling_high
from qdialect.lowering.kernels.reduction import Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.memory.storage import Storage, signed_shift
from qdialect.lowering.memory.strides import row_major
from qdialect.lowering.program import BufferSlot, Kernel
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.lanes import TILE_LANES

_ROWS = 4
# Quantized values lie around 128, and 2^7 of them make one.
_MIDDLE, _ROOT_BITS = 128, 7


@lowers(L2NormalizeOp)
def _l2_normalize(lowering: GraphLowering, op: L2NormalizeOp) -> None:
    shape, kernel = shape_of(op.input.type), Kernel(lowering.program)
    data, output = lowering.slot(op.input), lowering.result(op.output)
    source, target = _operand(kernel, "data", data, shape), _operand(kernel, "output", output, shape)
    point = op.input_zero_point + signed_shift(op.input.type)

    total, root, shift = (_per_row(lowering, kernel, name, shape) for name in ("total", "root", "shift"))
    kept, inputs = shape[:-1], [Reduced(replace(source, strides=source.strides[:-1]), (1,))]
    rows = replace(total, strides=total.strides[:-1])
    fold = _squares(kernel.number("zero_point", point, "i32"))
    emit_reduction(
        kernel, Reduction(kept, shape[-1:], inputs, [], rows, fold, lambda _, acc, __: acc, TILE_LANES, _ROWS)
    )
    for number, emit_number in ((root, emit_root), (shift, emit_root_shift)):
        emit_map(kernel, (*kept, 1), [total], number, _of_one(emit_number), TILE_LANES)
    scaled = _scaled(op, kernel.number("wide_zero_point", point, "i64"))
    emit_map(kernel, shape, [source, root, shift], target, scaled, TILE_LANES)
    lowering.program.call(kernel, op.operation.name)


def _operand(kernel: Kernel, name: str, slot: BufferSlot, shape: tuple[int, ...]) -> MapOperand:
    return MapOperand(kernel.slot(name, slot), dim_strides(shape, slot.storage), slot.storage.origin)


def _per_row(lowering: GraphLowering, kernel: Kernel, name: str, shape: tuple[int, ...]) -> MapOperand:
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


def _scaled(op: L2NormalizeOp, zero_point: Value) -> Emit:
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
