"""Functions of one tensor: tables of 8-bit and 16-bit arguments, the clamp, and requantization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qdialect.arithmetic import Table, real_multiplier, requantize, requantize_parameters, table_values
from qdialect.arithmetic.fixed_point_functions import fixed_point_table
from qdialect.dialect import ClipOp, LutOp, RequantizeOp, UnaryOp
from qdialect.dialect.i16_ops import FixedPointFunctionOp
from qdialect.dialect.op_base import for_each_op
from qdialect.dialect.type_constraints import EIGHT_BIT, dtype_of, element_of, range_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.qnn_to_linalg.bodies import quantization
from qdialect.lowering.qnn_to_linalg.conversions import maps
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, lowers
from qdialect.lowering.qnn_to_linalg.program import program
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Emit, Value, unchanged

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
    source, target = (maps.Stored(replace(slot, signed=False), shape_of(value.type)) for value, slot in ends)
    is_copy = np.array_equal(stored, np.arange(len(stored)))
    read: maps.Declare = (lambda _: unchanged) if is_copy else table_read(stored)
    maps.map_stored(lowering, target, [source], read, op.operation.name)


def table_read(table: Table) -> maps.Declare:
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
    maps.map_values(lowering, op.output, [op.input], declare, op.operation.name)


def _clamp(bounds: tuple[int, int], type_: ir.Type) -> maps.Declare:
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
    zero_points = maps.AxisArray(maps.stored_points(op.input_zero_points, op.input.type), op.axis)
    f32 = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
    how = quantization.requantization(op.rounding, requantize_parameters(op.rounding, f32), _bound(op))
    arrays = [zero_points, *(maps.AxisArray(p.values, op.axis) for p in how.parameters)]
    maps.map_values(lowering, op.output, [op.input, *arrays], _declare(op, how), op.operation.name, TILE_LANES)


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


def _declare(op: RequantizeOp, how: quantization.Requantization) -> maps.Declare:
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

    maps.map_values(lowering, op.output, [op.input], declare, op.operation.name, TILE_LANES)
