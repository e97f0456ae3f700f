"""Element-wise ops as maps over stored tensors: operands broadcast, per-axis parameters are operands too.

Of one tensor they are tables of 8-bit and 16-bit arguments, the clamp, and requantization.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import Table, real_multiplier, requantize, requantize_parameters, table_values
from qdialect.arithmetic.fixed_point_functions import fixed_point_table
from qdialect.dialect import ClipOp, LutOp, RequantizeOp, UnaryOp
from qdialect.dialect.i16_ops import FixedPointFunctionOp
from qdialect.dialect.op_base import for_each_op
from qdialect.dialect.type_constraints import EIGHT_BIT, dtype_of, element_of, range_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.ir.views import row_major
from qdialect.lowering.qnn_to_linalg.bodies import quantization
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import VECTOR, MapOperand, emit_map, on_stored
from qdialect.lowering.qnn_to_linalg.program import program
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, signed_shift
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Emit, Value, unchanged
from qdialect.support.diagnostics import CompileError

Declare = Callable[[Kernel], Emit]
"""Declares scalars and tables as parameters of a kernel; returns what computes an element."""


@dataclass(frozen=True)
class AxisArray:
    """An array of one entry for each index of a dimension, or of one entry for all."""

    values: NDArray[Any]
    axis: int


@dataclass(frozen=True)
class Known:
    """A constant tensor that is read where it lies; its elements are in no stored form."""

    values: NDArray[Any]


@dataclass(frozen=True)
class Stored:
    """A tensor as it is stored, and its logical shape."""

    slot: BufferSlot
    shape: tuple[int, ...]


Source = Stored | Known | AxisArray


def stored_points(zero_points: Sequence[int], type_: ir.Type) -> NDArray[np.int32]:
    """Zero points of a tensor type as those of its stored values; raises `CompileError` beyond 32 bits."""
    points = np.array(zero_points, dtype=np.int64) + signed_shift(type_)
    for point in (int(points.min()), int(points.max())):
        if not -(2**31) <= point < 2**31:
            raise CompileError(f"zero points must fit 32 bits to be compiled, but got {point - signed_shift(type_)}")
    return points.astype(np.int32)


def map_values(
    lowering: GraphLowering,
    result: ir.Value,
    operands: Sequence[ir.Value | AxisArray],
    declare: Declare,
    label: str,
    width: int = VECTOR,
) -> None:
    """Append the kernel that computes each element of `result` from those of `operands` at the same index."""
    sources = [
        operand if isinstance(operand, AxisArray) else Stored(lowering.slot(operand), shape_of(operand.type))
        for operand in operands
    ]
    target = Stored(lowering.result(result), shape_of(result.type))
    map_stored(lowering, target, sources, declare, label, width)


def map_stored(
    lowering: GraphLowering,
    target: Stored,
    sources: Sequence[Source],
    declare: Declare,
    label: str,
    width: int = VECTOR,
    vectors: int = 1,
) -> None:
    """`map_values` on tensors that have a slot already, by tiles of up to `vectors` rows of `width` elements."""
    shape = target.shape or (1,)
    # With padding lanes if all operands have them, so that rows join.
    tensors = [target, *(source for source in sources if isinstance(source, Stored))]
    lanes = min(t.slot.storage.pitch for t in tensors if (t.shape or (1,))[-1] == shape[-1])
    kernel = Kernel(lowering.program)
    signed = [isinstance(source, Stored) and source.slot.signed for source in sources]
    emit = on_stored(declare(kernel), signed, is_signed=target.slot.signed)
    operands = [_operand_of(source, shape, lanes) for source in sources]
    # Shorter rows are part of longer vectors, which are not the same for each row.
    if max(TILE_LANES, shape[-1] + 1) <= lanes and any(_has_spare_lanes(source, shape[-1]) for source in sources):
        emit, operands = _on_zeroed_lanes(emit, sources, shape[-1]), [*operands, _mask(shape, lanes)]
    emit_map(kernel, (*shape[:-1], lanes), operands, _operand(target, shape), emit, width, vectors=vectors)
    lowering.program.call(kernel, label)


def _has_spare_lanes(source: Source, count: int) -> bool:
    """Whether its rows are `count` f32 numbers and lanes that nobody has written."""
    return isinstance(source, Stored) and source.slot.storage.element == "f32" and source.shape[-1:] == (count,)


def _on_zeroed_lanes(emit: Emit, sources: Sequence[Source], count: int) -> Emit:
    """`emit` on zeros in spare lanes: a subnormal number there takes some Intel cores a hundred cycles."""
    found = [_has_spare_lanes(source, count) for source in sources]

    def emit_zeroed(body: Body, values: Sequence[Value]) -> Value:
        *rest, mask = values
        return emit(
            body, [_masked(body, value, mask) if has else value for value, has in zip(rest, found, strict=True)]
        )

    return emit_zeroed


def _masked(body: Body, value: Value, mask: Value) -> Value:
    bits = body.binary("arith.andi", body.cast("arith.bitcast", value, "i32"), mask)
    return body.cast("arith.bitcast", bits, "f32")


def _mask(shape: tuple[int, ...], lanes: int) -> MapOperand:
    """All bits of the elements of a row, and none of its spare lanes."""
    return MapOperand(
        np.repeat(np.array([-1, 0], dtype=np.int32), [shape[-1], lanes - shape[-1]]), (*(0,) * (len(shape) - 1), 1)
    )


def _operand_of(source: Source, shape: tuple[int, ...], lanes: int) -> MapOperand:
    if isinstance(source, AxisArray):
        values, is_last = source.values, source.axis == len(shape) - 1
        if len(values) == 1:
            return MapOperand(values, (0,) * len(shape))
        strides = tuple(int(axis == source.axis) for axis in range(len(shape)))
        return MapOperand(np.pad(values, (0, lanes - len(values))) if is_last else values, strides)
    return _operand(source, shape) if isinstance(source, Stored) else _known_operand(source.values, shape, lanes)


def _operand(tensor: Stored, shape: tuple[int, ...]) -> MapOperand:
    """`tensor` broadcast to `shape`."""
    own = tensor.shape or (1,)
    strides = broadcast_strides(own, dim_strides(own, tensor.slot.storage), shape)
    return MapOperand(tensor.slot, strides, tensor.slot.storage.origin)


def _known_operand(values: NDArray[Any], shape: tuple[int, ...], lanes: int) -> MapOperand:
    values = np.atleast_1d(values)
    if values.shape[-1] == shape[-1]:
        values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, lanes - shape[-1])])
    own = (*values.shape[:-1], shape[-1] if values.shape[-1] > 1 else 1)
    return MapOperand(values, broadcast_strides(own, row_major(values.shape), shape))


def broadcast_strides(own: tuple[int, ...], steps: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a tensor of shape `own`, seen as one of `shape`."""
    missing = len(shape) - len(own)
    triples = zip(own, shape[missing:], steps, strict=True)
    moving = tuple(0 if extent == 1 and wanted != 1 else step for extent, wanted, step in triples)
    return (0,) * missing + moving


# Functions of one 8-bit tensor, each of them a table; and the clamp, which needs none.


@lowers(LutOp, takes_arrays=True)
def _lut(lowering: GraphLowering, op: LutOp) -> None:
    lower_table(lowering, op, op.table)


def _unary(lowering: GraphLowering, op: UnaryOp) -> None:
    lower_table(lowering, op, op.to_table())


for_each_op(UnaryOp)(lambda op_class: lowers(op_class, takes_arrays=True)(_unary))


def lower_table(lowering: GraphLowering, op: LutOp | UnaryOp | RequantizeOp, table: Table) -> None:
    """Lower an op between 8-bit tensors that is `table`, given between bit patterns."""
    ends = [(op.input, lowering.slot(op.input)), (op.output, lowering.result(op.output))]
    # A table between signed quantized values is another table, so that no value need be flipped.
    stored = quantization.stored_table(
        table, *(0 if slot.signed else program.signed_shift(value.type) for value, slot in ends)
    )
    source, target = (Stored(replace(slot, signed=False), shape_of(value.type)) for value, slot in ends)
    is_copy = np.array_equal(stored, np.arange(len(stored)))
    read: Declare = (lambda _: unchanged) if is_copy else table_read(stored)
    map_stored(lowering, target, [source], read, op.operation.name)


def table_read(table: Table) -> Declare:
    """``table[x]`` of one operand, between stored quantized values."""

    def declare(kernel: Kernel) -> Emit:
        name = quantization.declare_table(kernel, table)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            index = body.cast("arith.index_castui", values[0], "index")
            return body.extract(name, index)

        return emit

    return declare


@lowers(ClipOp, takes_arrays=True)
def _clip(lowering: GraphLowering, op: ClipOp) -> None:
    shift = program.signed_shift(op.input.type)
    declare = _clamp((op.min + shift, op.max + shift), op.input.type)
    map_values(lowering, op.output, [op.input], declare, op.operation.name)


def _clamp(bounds: tuple[int, int], type_: ir.Type) -> Declare:
    """One operand of a tensor type limited to stored bounds."""
    element, sign = program.STORAGE_ELEMENTS[element_of(type_)], "u" if program.is_stored_unsigned(type_) else "s"

    def declare(kernel: Kernel) -> Emit:
        low, high = kernel.limits(bounds, element)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            value = body.binary(f"arith.max{sign}i", values[0], low)
            return body.binary(f"arith.min{sign}i", value, high)

        return emit

    return declare


# From one quantization to another, between any integer types, per tensor or per channel.


@lowers(RequantizeOp, takes_arrays=True)
def _requantize(lowering: GraphLowering, op: RequantizeOp) -> None:
    per_tensor = len(op.weight_scales) == 1 and len(op.input_zero_points) == 1
    if per_tensor and not EIGHT_BIT.problem(op.input.type) and not EIGHT_BIT.problem(op.output.type):
        lower_table(lowering, op, _table(op))
        return
    zero_points = AxisArray(stored_points(op.input_zero_points, op.input.type), op.axis)
    f32 = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
    how = quantization.requantization(op.rounding, requantize_parameters(op.rounding, f32), _bound(op))
    arrays = [zero_points, *(AxisArray(p.values, op.axis) for p in how.parameters)]
    map_values(lowering, op.output, [op.input, *arrays], _declare(op, how), op.operation.name, TILE_LANES)


def _table(op: RequantizeOp) -> Table:
    f32 = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
    offsets = table_values(dtype_of(op.input.type)) - op.input_zero_points[0]
    parameters, bounds = requantize_parameters(op.rounding, f32), range_of(op.output.type)
    quantized = requantize(offsets, parameters, op.output_zero_point, *bounds, op.rounding)
    return quantized.astype(dtype_of(op.output.type)).view(np.uint8)


def _bound(op: RequantizeOp) -> int:
    """The bound of the offsets' magnitudes."""
    low, high = range_of(op.input.type)
    return max(high - min(op.input_zero_points), max(op.input_zero_points) - low)


def _declare(op: RequantizeOp, how: quantization.Requantization) -> Declare:
    target = program.STORAGE_ELEMENTS[element_of(op.output.type)]
    # A difference of 32-bit numbers needs one bit more.
    offset_type = "i32" if _bound(op) < 2**31 else "i64"
    rescaling = quantization.Rescaling(
        how, op.output_zero_point, range_of(op.output.type), program.signed_shift(op.output.type), target
    )

    def declare(kernel: Kernel) -> Emit:
        rescale = rescaling.declare(kernel)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            quantized = body.cast(program.widening(op.input.type), values[0], offset_type)
            zero_point = body.cast("arith.extsi", values[1], offset_type)
            offset = body.subtract(quantized, zero_point)
            return rescale(body, offset, values[2:])

        return emit

    return declare


# Functions of 16-bit fixed-point numbers: a table of every argument, read by gathers.

_BIAS = 2**15


@lowers(FixedPointFunctionOp)
def _fixed_point_function(lowering: GraphLowering, op: FixedPointFunctionOp) -> None:
    # Gathers read words of 32 bits.
    table = fixed_point_table(op.function, op.integer_bits).astype(np.int32)

    def declare(kernel: Kernel) -> Emit:
        entries = kernel.flat_tensor(kernel.data("table", table))

        def emit(body: Body, values: Sequence[Value]) -> Value:
            argument = body.cast("arith.extsi", values[0], "i32")
            index = body.cast("arith.index_cast", body.add(argument, body.constant(_BIAS, "i32")), "index")
            return body.cast("arith.trunci", body.extract(entries, index), "i16")

        return emit

    map_values(lowering, op.output, [op.input], declare, op.operation.name, TILE_LANES)
