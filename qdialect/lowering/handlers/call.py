"""Calls of functions that other libraries compute: their arrays are dense, as users' arrays are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qdialect._mlir import ir
from qdialect.diagnostics import CompileError
from qdialect.dialect.type_constraints import shape_of
from qdialect.externals import record
from qdialect.lowering.external_functions import external_function
from qdialect.lowering.graph import GraphLowering, lowers_each
from qdialect.lowering.kernels.external_call import emit_clear, emit_external_call
from qdialect.lowering.memory.storage import dense_storage_of, signed_shift
from qdialect.lowering.program import BufferSlot


def _call(lowering: GraphLowering, call: ir.OpView) -> None:
    name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    if name not in lowering.handed_off:
        raise CompileError(f"must call a function that goes to a target, but got '{name}'")
    function = external_function(lowering.handed_off[name])
    program = lowering.program
    if program.symbols.setdefault(function.symbol, function.target) != function.target:
        known = program.symbols[function.symbol]
        raise CompileError(f"must be of target '{known}', as other calls of '{function.symbol}', not {function.target}")
    if not program.externals:
        emit_clear(program)
    data = program.constant(np.frombuffer(record.written(function), np.int8))
    inputs = [_dense_input(lowering, value) for value in call.operands]
    value = call.results[0]
    slot = _result(lowering, value)
    written = slot if _is_dense(slot, value.type) else _dense(lowering, value.type)
    emit_external_call(program, function.symbol, data, inputs, [written])
    if written != slot:
        lowering.copy(written, slot, shape_of(value.type), f"from {function.target}")


def _dense_input(lowering: GraphLowering, value: ir.Value) -> BufferSlot:
    """Where the elements of `value` lie as in a user's array: where they are stored, or a copy."""
    slot = lowering.slot(value)
    if _is_dense(slot, value.type):
        return slot
    copy = _dense(lowering, value.type)
    lowering.copy(slot, copy, shape_of(value.type), "to an external function")
    return copy


def _result(lowering: GraphLowering, value: ir.Value) -> BufferSlot:
    """The slot of a result; a dense one where all that read it take users' arrays."""
    slot = lowering.result(value)
    if slot.kind == "arena" and lowering.can_be_array(value) and not lowering.wants_halo(value):
        slot = _dense(lowering, value.type)
        lowering.define(value, slot)
    return slot


def _dense(lowering: GraphLowering, type_: ir.Type) -> BufferSlot:
    """A new buffer of the arena with the layout of a user's array."""
    return replace(lowering.program.buffer(dense_storage_of(type_)), signed=signed_shift(type_) != 0)


def _is_dense(slot: BufferSlot, type_: ir.Type) -> bool:
    return slot.storage == dense_storage_of(type_) and slot.signed == (signed_shift(type_) != 0)


lowers_each(["func.call"], _call, takes_arrays=True)
