"""Calls of extern functions: their records, and their arrays, which are dense like users' arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, cast

import numpy as np

from qdialect.dialect import AnyFused, QnnOp
from qdialect.dialect.constants import CONSTANT_OPS, constant_value
from qdialect.dialect.stages.stage_base import Stage, attributes_of
from qdialect.dialect.type_constraints import dtype_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import location_of, names_of
from qdialect.lowering.ir.functions import MAIN, error_at, name_of, op_error
from qdialect.lowering.ir.thread_pool import TASK, WAIT
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, lowers_each
from qdialect.lowering.qnn_to_linalg.program import program as programs
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer
from qdialect.passes.outlined import SYMBOL, TARGET, symbol_of, target_of
from qdialect.support import externals
from qdialect.support.diagnostics import CompileError
from qdialect.support.interface import KERNEL, Port
from qdialect.support.limits import SYMBOLS

# Descriptions of extern functions and their ops, independent of MLIR.

_EPILOGUE = "epilogue"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Functions of the code itself, and of the runtime.
_TAKEN = (MAIN, TASK, "task", WAIT, *SYMBOLS)


def external_function(function: ir.Operation) -> externals.ExternalFunction:
    """The record for the library that implements the extern `function`.

    Raises `CompileError` where the function does more than compute its one result by `qnn` ops.
    """
    _check_symbol(function)
    block = function.regions[0].blocks[0]
    *body, last = [op.operation for op in block.operations]
    computing = [op for op in body if op.name not in CONSTANT_OPS]
    if not computing or list(last.operands) != list(computing[-1].results):
        raise error_at(function.location, f"function '{name_of(function)}' must return the result of its last op")
    operations = tuple(_operation(op, computing, block) for op in computing)
    file, line, column = location_of(computing[-1].location)
    return externals.ExternalFunction(
        name_of(function),
        target_of(function),
        symbol_of(function),
        ", ".join(dict.fromkeys(name for op in computing for name in names_of(op.location))),
        f"{file}:{line}:{column}" if file and line else "",
        tuple(_input(operations, index, argument.type) for index, argument in enumerate(block.arguments)),
        operations[-1].result,
        operations,
    )


def _check_symbol(function: ir.Operation) -> None:
    target, symbol = target_of(function), symbol_of(function)
    for name, found in ((TARGET, target), (SYMBOL, symbol)):
        if not _IDENTIFIER.fullmatch(found):
            raise error_at(function.location, f"{name} must be an identifier of C, but got '{found}'")
    if symbol in _TAKEN or symbol.startswith(KERNEL):
        raise error_at(function.location, f"{SYMBOL} must not be a function of the network, but got '{symbol}'")


def _operation(op: ir.Operation, computing: Sequence[ir.Operation], block: ir.Block) -> externals.ExternalOperation:
    view = op.opview
    if not isinstance(view, QnnOp):
        raise op_error(op, "must be a qnn op to be computed by an external function")
    values = list(op.operands)
    names = [field.name for field in view.operand_fields]
    operands = {name: _operand(view, name, value, computing, block) for name, value in zip(names, values, strict=False)}
    if len(operands) != len(values):
        raise op_error(op, "must have named operands to be computed by an external function")
    stages = tuple(map(_stage, (placed.stage for placed in view.stages()))) if isinstance(view, AnyFused) else ()
    attributes = {name: _value(value, op) for name, value in view.attribute_values().items() if name != _EPILOGUE}
    scale, zero_point = (attributes.get(f"output_{kind}") for kind in ("scale", "zero_point"))
    result = _port("output", op.results[0].type, scale, zero_point)
    return externals.ExternalOperation(op.name, operands, attributes, stages, result)


def _operand(
    view: QnnOp, name: str, value: ir.Value, computing: Sequence[ir.Operation], block: ir.Block
) -> externals.ExternalOperand:
    port = _port(name, value.type, *_quantization(view, name))
    array = constant_value(value)
    if array is not None:
        return externals.ExternalOperand(port, externals.Source.CONSTANT, data=array)
    if value.owner == block:
        return externals.ExternalOperand(port, externals.Source.INPUT, ir.BlockArgument(value).arg_number)
    results: list[ir.Value] = [op.results[0] for op in computing]
    return externals.ExternalOperand(port, externals.Source.OPERATION, results.index(value))


def _quantization(view: QnnOp, name: str) -> tuple[Any, Any]:
    """Scale and zero point of an operand, as far as its op tells them for the tensor as a whole."""
    if not isinstance(view, AnyFused):
        return None, None
    if name == "data":
        return view.input_scale, view.input_zero_point
    if name == "weight":
        scales, points = view.weight_scales, view.weight_zero_points
        return (scales[0] if len(scales) == 1 else None), (points[0] if len(points) == 1 else None)
    readers = [placed.stage for placed in view.stages() if placed.stage.reads_residual]
    if name == "residual" and readers:
        return getattr(readers[0], "residual_scale"), getattr(readers[0], "residual_zero_point")  # noqa: B009
    return None, None


def _input(operations: Sequence[externals.ExternalOperation], index: int, type_: ir.Type) -> Port:
    readers = [
        operand.tensor
        for operation in operations
        for operand in operation.operands.values()
        if operand.source is externals.Source.INPUT and operand.index == index
    ]
    known = readers[0] if readers else _port("", type_, None, None)
    return Port(f"input{index}", known.shape, known.dtype, known.scale, known.zero_point)


def _stage(stage: Stage) -> externals.ExternalStage:
    values = {name: getattr(stage, name) for name in attributes_of(type(stage))}
    return externals.ExternalStage(stage.name, {name: _plain(value) for name, value in values.items()})


def _value(value: object, op: ir.Operation) -> externals.Value:
    plain = _plain(value)
    if isinstance(plain, int | float | str | tuple | np.ndarray):
        return cast("externals.Value", plain)
    raise op_error(op, f"must have attributes of numbers and texts to be computed by an external function: {plain}")


def _plain(value: Any) -> Any:
    """A text of an enumeration, a number of a bool."""
    if isinstance(value, Enum):
        return str(value.value)
    return int(value) if isinstance(value, bool) else value


def _port(name: str, type_: ir.Type, scale: Any, zero_point: Any) -> Port:
    return Port(name, shape_of(type_), dtype_of(type_), scale, zero_point)


# The kernel that calls a C function of another library.
#
# The working memory begins with a few words that all of these kernels use, so that they run one after the other however
# many threads there are: the status of the first call that failed, 0 before; the number of the last call; then the
# addresses of the arrays. After a failure no other external function is called, and the results are garbage.


def emit_clear(program: programs.Program) -> None:
    """Append the kernel call that clears the failure flag."""
    kernel = programs.Kernel(program)
    words = _words(kernel, externals.FIRST_ADDRESS)
    for index in (externals.STATUS, externals.NUMBER):
        kernel.put(words, index, kernel.constant(0, "i64"))
    program.call(kernel, "external calls")


def emit_external_call(
    program: programs.Program,
    symbol: str,
    record: programs.Data,
    inputs: Sequence[programs.BufferSlot],
    outputs: Sequence[programs.BufferSlot],
) -> None:
    """Append the kernel call that calls `symbol` with its `record` and arrays that lie as those of users do."""
    kernel = programs.Kernel(program)
    words = _words(kernel, externals.FIRST_ADDRESS + len(inputs) + len(outputs))
    kernel.actuals.append(record)
    described = kernel.buffer("record", record.element, record.length)
    arrays = [kernel.slot(f"in{i}", slot) for i, slot in enumerate(inputs)]
    arrays += [kernel.slot(f"out{i}", slot) for i, slot in enumerate(outputs)]
    number = kernel.number("number", len(program.externals), "i64")
    status = kernel.entry(words, kernel.constant(externals.STATUS, "index"))
    with kernel.when(kernel.compare("eq", status, kernel.constant(0, status.type))):
        kernel.put(words, externals.NUMBER, number)
        for index, array in enumerate(arrays):
            kernel.put(words, externals.FIRST_ADDRESS + index, kernel.address(array))
        start = kernel.address(words)
        lists = [
            kernel.offset(start, externals.WORD_BYTES * (externals.FIRST_ADDRESS + count)) for count in (0, len(inputs))
        ]
        kernel.put(words, externals.STATUS, kernel.external_call(symbol, [kernel.address(described), *lists]))
    program.externals.append(record)
    program.call(kernel, symbol)


def _words(kernel: programs.Kernel, count: int) -> Buffer:
    kernel.program.words = max(kernel.program.words, count)
    return kernel.slot("words", programs.BufferSlot("words", 0, programs.Storage((1, 1, 1, count), "i64", count)))


# Calls of functions that other libraries compute: their arrays are dense, as users' arrays are.


def _call(lowering: GraphLowering, call: ir.OpView) -> None:
    name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    if name not in lowering.extern_functions:
        raise CompileError(f"must call a function that goes to a target, but got '{name}'")
    function = external_function(lowering.extern_functions[name])
    program = lowering.program
    if program.symbols.setdefault(function.symbol, function.target) != function.target:
        known = program.symbols[function.symbol]
        raise CompileError(f"must be of target '{known}', as other calls of '{function.symbol}', not {function.target}")
    if not program.externals:
        emit_clear(program)
    data = program.constant(np.frombuffer(externals.written(function), np.int8))
    inputs = [_dense_input(lowering, value) for value in call.operands]
    value = call.results[0]
    # A result is dense where all that read it take users' arrays.
    slot = lowering.result(value)
    if slot.kind == "arena" and lowering.can_be_array(value) and not lowering.is_padded(value):
        slot = _dense(lowering, value.type)
        lowering.define(value, slot)
    written = slot if _is_dense(slot, value.type) else _dense(lowering, value.type)
    emit_external_call(program, function.symbol, data, inputs, [written])
    if written != slot:
        lowering.copy(written, slot, shape_of(value.type), f"from {function.target}")


def _dense_input(lowering: GraphLowering, value: ir.Value) -> programs.BufferSlot:
    """The slot of `value` in the layout of a user's array: its own, or a copy."""
    slot = lowering.slot(value)
    if _is_dense(slot, value.type):
        return slot
    copy = _dense(lowering, value.type)
    lowering.copy(slot, copy, shape_of(value.type), "to an external function")
    return copy


def _dense(lowering: GraphLowering, type_: ir.Type) -> programs.BufferSlot:
    """A new buffer of the arena with the layout of a user's array."""
    return replace(lowering.program.buffer(programs.dense_storage_of(type_)), signed=programs.signed_shift(type_) != 0)


def _is_dense(slot: programs.BufferSlot, type_: ir.Type) -> bool:
    return slot.storage == programs.dense_storage_of(type_) and slot.signed == (programs.signed_shift(type_) != 0)


lowers_each(["func.call"], _call, takes_arrays=True)
