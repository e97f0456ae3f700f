"""Concatenation: each input is written into its slice of the result, through a table where its quantized values change.

`tensor.concat` is the same on elements that stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import ConcatOp
from qdialect.dialect.type_constraints import dtype_of, range_of, shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers, lowers_each
from qdialect.lowering.handlers.tables import table_read
from qdialect.lowering.kernels.elementwise import Emit, MapOperand, emit_map
from qdialect.lowering.kernels.table import stored_table
from qdialect.lowering.memory.storage import signed_shift
from qdialect.lowering.program import Kernel
from qdialect.quant_math import QuantParams, Table, encode_table, identity_table, table_values
from qdialect.quant_math.elementwise import rescale


@lowers(ConcatOp)
def _concat(lowering: GraphLowering, op: ConcatOp) -> None:
    values = list(op.inputs)
    _write_parts(lowering, op.operation, op.axis, lambda kernel, i: _emit(kernel, _table(op, i, values[i])))


def _tensor_concat(lowering: GraphLowering, op: ir.OpView) -> None:
    axis = ir.IntegerAttr(op.operation.attributes["dim"]).value
    _write_parts(lowering, op.operation, axis, lambda _, __: lambda ___, values: values[0])


lowers_each(("tensor.concat",), _tensor_concat)


def _write_parts(lowering: GraphLowering, op: ir.Operation, axis: int, emit_of: Callable[[Kernel, int], Emit]) -> None:
    """Write every operand into its slice along `axis`; `emit_of` says how an element of operand i changes."""
    values, result = list(op.operands), op.results[0]
    slots = [lowering.slot(value) for value in values]
    output = lowering.result(result)
    strides = dim_strides(shape_of(result.type), output.storage)
    is_channels_last = axis == len(strides) - 1
    start = 0
    for index, (value, slot) in enumerate(zip(values, slots, strict=True)):
        shape = shape_of(value.type)
        lanes = shape[-1] if is_channels_last else min(slot.storage.pitch, output.storage.pitch)
        source = MapOperand(slot, dim_strides(shape, slot.storage), slot.storage.origin)
        target = MapOperand(output, strides, output.storage.origin + start * strides[axis])
        kernel = Kernel(lowering.program)
        emit_map(kernel, (*shape[:-1], lanes), [source], target, emit_of(kernel, index))
        lowering.program.call(kernel, op.name)
        start += shape[axis]


def _table(op: ConcatOp, index: int, value: ir.Value) -> Table:
    """The way of an input's stored quantized values to stored quantized values of the result."""
    affine, output = (
        QuantParams(op.input_scales[index], op.input_zero_points[index]),
        QuantParams(op.output_scale, op.output_zero_point),
    )
    quantized = rescale(table_values(dtype_of(value.type)), affine, output, op.rounding, op.multiplier)
    table = encode_table(np.clip(quantized, *range_of(op.output.type)), dtype_of(op.output.type))
    return stored_table(table, signed_shift(value.type), signed_shift(op.output.type))


def _emit(kernel: Kernel, table: Table) -> Emit:
    if np.array_equal(table, identity_table()):
        return lambda _, values: values[0]
    return table_read(table)(kernel)
