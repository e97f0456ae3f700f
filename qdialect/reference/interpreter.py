"""Runs any `qnn` module on NumPy arrays, op by op: slow, and exact by definition."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect.constants import missing_elements
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import functions, name_of, note_at
from qdialect.reference import evaluators
from qdialect.support.diagnostics import CompileError, Diagnostic, InputError, Severity
from qdialect.support.limits import exceeded_limit

_CALL = "func.call"

Array = NDArray[Any]
Observer = Callable[[ir.Operation, Array], None]


def run(module: ir.Module, inputs: Sequence[Array], *, observe: Observer | None = None) -> tuple[Array, ...]:
    """The results of ``func.func @main`` of `module` on `inputs`, one array for each argument and result.

    A ``ui8`` tensor is a `uint8` array, an ``i8`` tensor an `int8` one. `observe` is called with every op and the value
    of its result, in order.

    Raises `InputError` for arrays that do not fit the arguments, and `CompileError`, before anything runs, where an op
    has no evaluator or a value no static type, every one of them a note; and where there is not enough memory.
    """
    main, called = _main_of(module), _called(module)
    operations = _body(main)
    _check_operations(operations, called)
    for operation in (*operations, *(op for function in called.values() for op in _body(function))):
        problem = missing_elements(operation)
        if problem:
            raise _error_at(operation, problem)
    _check_memory(operations[:-1])
    arguments = list(main.regions[0].blocks[0].arguments)
    _check_inputs(main, [argument.type for argument in arguments], inputs)
    values: dict[ir.Value, Array] = dict(zip(arguments, inputs, strict=True))
    return _evaluated(operations, values, called, observe)


def _evaluated(
    operations: Sequence[ir.Operation],
    values: dict[ir.Value, Array],
    called: Mapping[str, ir.Operation],
    observe: Observer | None,
) -> tuple[Array, ...]:
    for operation in operations[:-1]:
        result, operands = operation.results[0], [values[operand] for operand in operation.operands]
        if operation.name == _CALL:
            function = called[_callee(operation)]
            inside: dict[ir.Value, Array] = dict(zip(function.regions[0].blocks[0].arguments, operands, strict=True))
            (value,) = _evaluated(_body(function), inside, {}, observe)
        else:
            value = _value(operation, operands)
        # Of scalars NumPy makes numbers, which are no arrays; beyond a float type lies infinity.
        with np.errstate(over="ignore"):
            values[result] = np.asarray(value, dtype=_dtype_of(result.type))
        if observe is not None:
            observe(operation, values[result])
    return tuple(values[operand] for operand in operations[-1].operands)


def _value(operation: ir.Operation, operands: Sequence[Array]) -> Array:
    try:
        return evaluators.EVALUATORS[operation.name](operation.opview, operands)
    except MemoryError as error:
        raise _error_at(operation, "needs more memory than there is") from error


def _body(function: ir.Operation) -> list[ir.Operation]:
    return [op.operation for op in function.regions[0].blocks[0].operations]


def _called(module: ir.Module) -> dict[str, ir.Operation]:
    """The functions that may be called: of one block and one result, as outlined ones are."""
    plain = [f for f in functions(module) if len(f.regions[0].blocks) == 1 and len(_body(f)[-1].operands) == 1]
    return {name_of(function): function for function in plain}


def _callee(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _main_of(module: ir.Module) -> ir.Operation:
    main = next((function for function in functions(module) if name_of(function) == "main"), None)
    if main is None:
        raise CompileError("module must have a function @main")
    blocks = len(main.regions[0].blocks)
    if blocks != 1:
        raise CompileError(f"function @main must have 1 block, but got {blocks}")
    return main


def _check_operations(operations: Sequence[ir.Operation], called: Mapping[str, ir.Operation]) -> None:
    notes = tuple(note for operation in operations[:-1] for note in _unsupported(operation, called))
    if operations[-1].name != "func.return":
        notes += (_located(operations[-1], "must end function @main as 'func.return' does"),)
    if notes:
        message = f"function @main must consist of ops with a reference meaning, but {len(notes)} have none"
        raise CompileError(message, (Diagnostic(Severity.ERROR, message, notes=notes),))


def _check_memory(operations: Sequence[ir.Operation]) -> None:
    """All values live until the end."""
    types = [[result.type for result in operation.results if _has_dtype(result.type)] for operation in operations]
    sizes = [sum(math.prod(shape_of(one)) * _dtype_of(one).itemsize for one in found) for found in types]
    allowed = exceeded_limit(sum(sizes))
    if allowed is None:
        return
    operation, needed = next(pair for pair in zip(operations, accumulate(sizes), strict=True) if pair[1] > allowed)
    raise _error_at(operation, f"values must have at most {allowed} bytes together, but need {needed}")


def _unsupported(operation: ir.Operation, called: Mapping[str, ir.Operation]) -> list[Diagnostic]:
    if operation.name == _CALL and _callee(operation) in called:
        # Called functions call nothing, so evaluation ends.
        return [note for inner in _body(called[_callee(operation)])[:-1] for note in _unsupported(inner, {})]
    if operation.name not in evaluators.EVALUATORS:
        return [_located(operation, "has no reference meaning")]
    types = [value.type for value in (*operation.operands, *operation.results)]
    unknown = [type_ for type_ in types if not _has_dtype(type_)]
    return [_located(operation, f"has a value of type {unknown[0]}, which is no static tensor")] if unknown else []


def _error_at(operation: ir.Operation, message: str) -> CompileError:
    note = _located(operation, message)
    return CompileError(note.message, (replace(note, severity=Severity.ERROR),))


def _located(operation: ir.Operation, message: str) -> Diagnostic:
    note = note_at(operation, message)
    return note if note.location else replace(note, message=f"{note.message} at {operation.location}")


def _has_dtype(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and type_.has_static_shape and element_of(type_) in NUMPY_DTYPES


def _dtype_of(type_: ir.Type) -> np.dtype[Any]:
    return NUMPY_DTYPES[element_of(type_)]


def _check_inputs(main: ir.Operation, types: Sequence[ir.Type], inputs: Sequence[Array]) -> None:
    if len(inputs) != len(types):
        raise InputError(f"function @main must be called with {len(types)} arrays, but got {len(inputs)}")
    for index, (type_, array) in enumerate(zip(types, inputs, strict=True)):
        if not isinstance(cast("object", array), np.ndarray):
            kind = type(array).__name__
            raise InputError(f"input {_input_name(main, index)} must be an array, but got {kind}")
        wanted, found = _array_text(_dtype_of(type_), shape_of(type_)), _array_text(array.dtype, array.shape)
        if wanted != found:
            raise InputError(f"input {_input_name(main, index)} must be {wanted}, but got {found}")


def _array_text(dtype: np.dtype[Any], shape: Sequence[int]) -> str:
    # A name does not tell byte orders apart.
    return f"{dtype.name if dtype.isnative else dtype.str}[{', '.join(map(str, shape))}]"


def _input_name(main: ir.Operation, index: int) -> str:
    if "arg_attrs" not in main.attributes:
        return str(index)
    attributes = ir.DictAttr(ir.ArrayAttr(main.attributes["arg_attrs"])[index])
    return f"'{ir.StringAttr(attributes['qnn.name']).value}'" if "qnn.name" in attributes else str(index)
