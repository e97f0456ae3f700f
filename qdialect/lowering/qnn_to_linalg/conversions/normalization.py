"""L2 and layer normalization, and softmax: sums of each row, a number of each row, and a map over the elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import fixed_point_functions
from qdialect.arithmetic import softmax_tables as shares
from qdialect.arithmetic.choices import SoftmaxArithmetic
from qdialect.dialect import L2NormalizeOp, SoftmaxOp
from qdialect.dialect.i16_ops import I16LayerNormOp
from qdialect.dialect.type_constraints import range_of, shape_of
from qdialect.lowering.cost.strategy import TILE_LANES, lane_parts
from qdialect.lowering.ir.views import row_major
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, lowers, stored_operand
from qdialect.lowering.qnn_to_linalg.kernels import reduction
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.kernels.transposition import TransposedRows, emit_transposed_rows, rows_of
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Tensor
from qdialect.lowering.qnn_to_linalg.program.program import NO_PADS, BufferSlot, Kernel, Storage, signed_shift
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Emit, Value

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
    kept, inputs = shape[:-1], [reduction.Reduced(replace(source, strides=source.strides[:-1]), (1,))]
    rows = replace(total, strides=total.strides[:-1])
    fold = _squares(kernel.number("zero_point", point, "i32"))
    reduction.emit_reduction(
        kernel, reduction.Reduction(kept, shape[-1:], inputs, [], rows, fold, reduction.as_folded, TILE_LANES, _ROWS)
    )
    for number, emit_number in ((root, fixed_point_functions.inverse_root), (shift, fixed_point_functions.root_shift)):
        emit_map(kernel, (*kept, 1), [total], number, _of_one(emit_number), TILE_LANES)
    scaled = _scaled_by_root(op, kernel.number("wide_zero_point", point, "i64"))
    emit_map(kernel, shape, [source, root, shift], target, scaled, TILE_LANES)
    lowering.program.call(kernel, op.operation.name)


def _operand(kernel: Kernel, name: str, slot: BufferSlot, shape: tuple[int, ...]) -> MapOperand:
    return replace(stored_operand(slot, shape), source=kernel.slot(name, slot))


def _squares(zero_point: Value) -> reduction.Fold:
    def emit(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        offset = body.subtract(body.cast("arith.extui", values[0], "i32"), zero_point)
        return body.add(acc, body.multiply(offset, offset))

    return reduction.Fold("i32", 0, emit, lambda body, a, b: body.add(a, b))


def _of_one(emit_number: Callable[[Body, Value], Value]) -> Emit:
    return lambda body, values: emit_number(body, values[0])


def _scaled_by_root(op: L2NormalizeOp, zero_point: Value) -> Emit:
    """Stored quantized values of either type lie around 128."""

    def emit(body: Body, values: Sequence[Value]) -> Value:
        offset = body.subtract(body.cast("arith.extui", values[0], "i64"), zero_point)
        root, shift = (body.cast("arith.extui", value, "i64") for value in values[1:])
        scaled = fixed_point_functions.scaled_by_root(
            body, offset, root, shift, is_signed=bool(signed_shift(op.input.type))
        )
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
    inputs = [reduction.Reduced(replace(source, strides=source.strides[:-1]), (1,))]
    for rows, fold in ((total, reduction.folded("i64", 0, "arith.addi", "arith.extsi")), (squares, _sum_of_squares())):
        result = replace(rows, strides=rows.strides[:-1])
        reduction.emit_reduction(
            kernel,
            reduction.Reduction(kept, (count,), inputs, [], result, fold, reduction.as_folded, TILE_LANES, _ROWS),
        )
    one = (*kept, 1)
    emit_map(kernel, one, [total], mean, lambda body, v: fixed_point_functions.row_mean(body, v[0], count), TILE_LANES)

    def of_squares(body: Body, values: Sequence[Value]) -> Value:
        own = body.cast("arith.extsi", values[1], "i64")
        return fixed_point_functions.row_variance(body, values[0], own, count, op.variance_guard)

    def normalized(body: Body, values: Sequence[Value]) -> Value:
        x, own, root, shift, weight, bias = (body.cast("arith.extsi", value, "i64") for value in values)
        return fixed_point_functions.layer_normalized(body, x, own, root, shift, weight, bias, op.scale)

    emit_map(kernel, one, [squares, mean], variance, of_squares, TILE_LANES)
    emit_map(kernel, one, [variance], root, _of_one(fixed_point_functions.inverse_root), TILE_LANES)
    emit_map(kernel, one, [variance], shift, _of_one(fixed_point_functions.root_shift), TILE_LANES)
    emit_map(kernel, shape, [source, mean, root, shift, weight, bias], target, normalized, TILE_LANES)
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


def _sum_of_squares() -> reduction.Fold:
    def emit(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        wide = body.cast("arith.extsi", values[0], "i32")
        return body.add(acc, body.cast("arith.extsi", body.multiply(wide, wide), "i64"))

    return reduction.Fold("i64", 0, emit, lambda body, a, b: body.add(a, b))


# Softmax: the largest quantized value of each row, the sum of its exponentials, then each element's share.
#
# Exponentials are entries of a table by the distance from the row's largest value, so a row needs one or two numbers
# in addition to its values: no tensor of exponentials is stored.
#
# Float32 sums take the elements of a row in order.  Where 64 entries are looked up at once, the rows are transposed for
# that, into the memory of the result, which is written afterwards.

_MAX_LANES = 64

_Quotient = Callable[[Body, Value, Value, Value], Value]


@lowers(SoftmaxOp)
def _softmax(lowering: GraphLowering, op: SoftmaxOp) -> None:
    _LOWERINGS[op.arithmetic](_Rows(lowering, op))


@dataclass
class _Rows:
    """A softmax whose rows run along `axis`; numbers of a row are tensors of the data's shape with extent 1 there.

    Everything is in one kernel, one micro-kernel after the other.
    """

    lowering: GraphLowering
    op: SoftmaxOp
    kernel: Kernel = field(init=False)
    shape: tuple[int, ...] = field(init=False)
    """Extents to process: padding lanes count as rows if the rows run along another dimension."""
    largest: MapOperand = field(init=False)
    """The largest stored value of each row, i8."""
    _transposed: TransposedRows | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        shape = shape_of(self.op.input.type)
        data, output = self.lowering.slot(self.op.input), self.lowering.result(self.op.output)
        self.kernel, self.axis = Kernel(self.lowering.program), self.op.axis
        is_channels_last = self.axis == len(shape) - 1
        lanes = shape[-1] if is_channels_last else min(data.storage.pitch, output.storage.pitch)
        self.shape = (*shape[:-1], lanes)
        self.source, self._target = (
            _operand(self.kernel, name, slot, shape) for name, slot in (("data", data), ("output", output))
        )
        self._transposed = self._transpose(output)
        self.largest = self.reduce([], reduction.MAX, _MAX_LANES, "largest")

    def table(self, name: str, entries: NDArray[Any]) -> Tensor:
        """A tensor of 256 constants."""
        return self.kernel.flat_tensor(self.kernel.data(name, entries))

    def reduce(self, more: Sequence[MapOperand], fold: reduction.Fold, width: int, name: str) -> MapOperand:
        """Fold the quantized values of each row, together with the values of `more`."""
        result = self._per_row(fold.element, name)
        if self._transposed:
            self._transposed.reduce(self.kernel, more, fold, result, _MAX_LANES)
            return result
        kept = [i for i in range(len(self.shape)) if i != self.axis]
        inputs = [reduction.Reduced(_picked(o, kept), (o.strides[self.axis],)) for o in (self.source, *more)]
        reduction.emit_reduction(
            self.kernel,
            reduction.Reduction(
                tuple(self.shape[i] for i in kept),
                (self.shape[self.axis],),
                inputs,
                [],
                _picked(result, kept),
                fold,
                reduction.as_folded,
                width,
                _ROWS,
            ),
        )
        return result

    def map_rows(self, source: MapOperand, element: str, emit: Emit, name: str) -> MapOperand:
        """A number for each row from another."""
        result = self._per_row(element, name)
        sizes = [1 if i == self.axis else extent for i, extent in enumerate(self.shape)]
        emit_map(self.kernel, sizes, [source], result, emit, TILE_LANES)
        return result

    def finish(self, numbers: Sequence[MapOperand], emit: Emit) -> None:
        """The result from (value, largest, numbers of the row)."""
        operands = [self.source, self.largest, *numbers]
        *outer, last = self.shape
        for start, extent, width in lane_parts(last, self.table_lanes, TILE_LANES):
            parts = [_from(operand, start) for operand in operands]
            emit_map(self.kernel, (*outer, extent), parts, _from(self._target, start), emit, width)
        self.lowering.program.call(self.kernel, self.op.operation.name)

    @property
    def table_lanes(self) -> int:
        """How many entries are looked up at once."""
        return self.lowering.program.strategy.maps.tables

    def _transpose(self, output: BufferSlot) -> TransposedRows | None:
        """The rows side by side, where that makes their sums faster: integers need not be added in order."""
        is_ordered = self.op.arithmetic is not SoftmaxArithmetic.TFLITE_FIXED
        is_last = self.axis == len(self.shape) - 1
        rows = rows_of(self.source, self.shape) if is_last and is_ordered and self.table_lanes == _MAX_LANES else None
        if rows is None:
            return None
        is_free = output.storage.pads == NO_PADS and rows_of(self._target, self.shape) is not None
        return emit_transposed_rows(self.kernel, rows, self._target if is_free else None)

    def _per_row(self, element: str, name: str) -> MapOperand:
        """A new tensor of one number for each row."""
        sizes = [1 if i == self.axis else extent for i, extent in enumerate(self.shape)]
        strides = [0 if i == self.axis else stride for i, stride in enumerate(row_major(sizes))]
        count = prod(sizes)
        slot = self.lowering.program.buffer(Storage((1, 1, 1, count), element, count))
        return MapOperand(self.kernel.slot(name, slot), tuple(strides))


def _from(operand: MapOperand, start: int) -> MapOperand:
    """`operand` from element `start` of the last dimension on."""
    return replace(operand, offset=operand.offset + start * operand.strides[-1])


def _picked(operand: MapOperand, dims: Sequence[int]) -> MapOperand:
    return MapOperand(operand.source, tuple(operand.strides[i] for i in dims), operand.offset)


def _entry(body: Body, table: Tensor, quantized: Value, largest: Value) -> Value:
    """``table[largest - quantized]`` of 256 entries, from stored values of which `largest` is the larger one."""
    top, own = (body.cast("arith.extui", value, "i32") for value in (largest, quantized))
    distance = body.cast("arith.index_cast", body.subtract(top, own), "index")
    return body.extract(table, distance)


def _sum_of_entries(table: Tensor) -> reduction.Fold:
    """The sum of ``table[largest - quantized]`` over (value, largest); float32 sums keep the order of the elements."""
    element = table.element

    def emit(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        return body.add(acc, _entry(body, table, values[0], values[1]))

    return reduction.Fold(element, 0, emit, lambda body, a, b: body.add(a, b), is_ordered=element == "f32")


def _lower_fixed(rows: _Rows) -> None:
    tables = shares.softmax_tables(rows.op.input_scale, rows.op.beta)
    total = rows.reduce(
        [rows.largest], _sum_of_entries(rows.table("addends", tables.addends)), rows.table_lanes, "total"
    )
    inverse = rows.map_rows(total, "i32", lambda body, v: shares.reciprocal(body, v[0]), "reciprocal")
    shift = rows.map_rows(total, "i32", lambda body, v: shares.share_shift(body, v[0]), "shift")
    exponentials = rows.table("exponentials", tables.exponentials)

    def emit(body: Body, values: Sequence[Value]) -> Value:
        entry = _entry(body, exponentials, values[0], values[1])
        return body.narrow(shares.share(body, entry, values[2], values[3]))

    rows.finish([inverse, shift], emit)


def _lower_float(rows: _Rows) -> None:
    op = rows.op
    _lower_shares(
        rows, shares.float_entries(op.input_scale, op.beta), float(np.float32(op.output_scale)), shares.float_share
    )


def _lower_ort(rows: _Rows) -> None:
    op = rows.op
    entries = shares.ort_entries(op.input_scale, op.beta, shape_of(op.input.type)[op.axis])

    factor = shares.ort_factor(op.output_scale)
    largest = shares.ort_largest(entries, factor)
    beyond = shares.ort_beyond(op.output_zero_point, *range_of(op.output.type)) - op.output_zero_point

    def quotient(body: Body, entry: Value, total: Value, factor: Value) -> Value:
        return shares.ort_share(body, entry, total, factor, largest, beyond)

    _lower_shares(rows, entries, float(factor), quotient)


def _lower_shares(rows: _Rows, entries: NDArray[np.float32], number: float, quotient: _Quotient) -> None:
    """Sums of entries in the order of the elements, then `quotient` of (entry, sum, `number`) rounded to even."""
    op, kernel, table = rows.op, rows.kernel, rows.table("entries", entries)
    total = rows.reduce([rows.largest], _sum_of_entries(table), TILE_LANES, "total")
    scale = kernel.number("scale", number, "f32")
    low, high = range_of(op.output.type)
    low, high = kernel.limits((low - op.output_zero_point, high - op.output_zero_point), "f32")
    zero_point = kernel.number("zero_point", op.output_zero_point + signed_shift(op.output.type), "i32")

    def emit(body: Body, values: Sequence[Value]) -> Value:
        entry = _entry(body, table, values[0], values[1])
        # Bounds are integers: clamping before rounding gives the same result and keeps the conversion in range.
        clamped = body.clamp(quotient(body, entry, values[2], scale), low, high)
        rounded = body.unary("math.roundeven", clamped)
        quantized = body.add(body.cast("arith.fptosi", rounded, "i32"), zero_point)
        return body.narrow(quantized)

    rows.finish([total], emit)


_LOWERINGS: dict[SoftmaxArithmetic, Callable[[_Rows], None]] = {
    SoftmaxArithmetic.TFLITE_FIXED: _lower_fixed,
    SoftmaxArithmetic.FLOAT: _lower_float,
    SoftmaxArithmetic.ORT_TABLE: _lower_ort,
}
