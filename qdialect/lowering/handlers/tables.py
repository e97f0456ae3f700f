"""Functions of one 8-bit tensor, each of them a table; and the clamp, which needs none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import UNARY_OPS, ClipOp, LutOp, RequantizeOp, UnaryOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.maps import Declare, Stored, map_stored, map_values
from qdialect.lowering.kernels.elementwise import Emit, byte_literal
from qdialect.lowering.kernels.table import declare_table, stored_table
from qdialect.lowering.memory.storage import STORAGE_ELEMENTS, is_stored_unsigned, signed_shift
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math import Table


@lowers(LutOp, takes_arrays=True)
def _lut(lowering: GraphLowering, op: LutOp) -> None:
    lower_table(lowering, op, op.table)


def _unary(lowering: GraphLowering, op: UnaryOp) -> None:
    lower_table(lowering, op, op.to_table())


for _op_class in UNARY_OPS:
    lowers(_op_class, takes_arrays=True)(_unary)


def lower_table(lowering: GraphLowering, op: LutOp | UnaryOp | RequantizeOp, table: Table) -> None:
    """Lower an op between 8-bit tensors that is `table`, given between bit patterns."""
    ends = [(op.input, lowering.slot(op.input)), (op.output, lowering.result(op.output))]
    # A table between signed quantized values is another table, so that no value need be flipped.
    stored = stored_table(table, *(0 if slot.signed else signed_shift(value.type) for value, slot in ends))
    source, target = (Stored(replace(slot, signed=False), shape_of(value.type)) for value, slot in ends)
    is_copy = np.array_equal(stored, np.arange(len(stored)))
    map_stored(lowering, target, [source], _copy if is_copy else table_read(stored), op.operation.name)


def _copy(_: Kernel) -> Emit:
    return lambda _, values: values[0]


def table_read(table: Table) -> Declare:
    """``table[x]`` of one operand, between stored quantized values."""

    def declare(kernel: Kernel) -> Emit:
        name = declare_table(kernel, table)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            index = body.cast("arith.index_castui", values[0], "index")
            return body.extract(name, index)

        return emit

    return declare


@lowers(ClipOp, takes_arrays=True)
def _clip(lowering: GraphLowering, op: ClipOp) -> None:
    shift = signed_shift(op.input.type)
    declare = _clamp((op.min + shift, op.max + shift), op.input.type)
    map_values(lowering, op.output, [op.input], declare, op.operation.name)


def _clamp(bounds: tuple[int, int], type_: ir.Type) -> Declare:
    """One operand of a tensor type limited to stored bounds."""
    element, sign = STORAGE_ELEMENTS[element_of(type_)], "u" if is_stored_unsigned(type_) else "s"

    def declare(kernel: Kernel) -> Emit:
        low, high = (
            kernel.number(name, byte_literal(bound) if element == "i8" else bound, element)
            for name, bound in zip(("low", "high"), bounds, strict=True)
        )

        def emit(body: Body, values: Sequence[Value]) -> Value:
            value = body.binary(f"arith.max{sign}i", values[0], low)
            return body.binary(f"arith.min{sign}i", value, high)

        return emit

    return declare
