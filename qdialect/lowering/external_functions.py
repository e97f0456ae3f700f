"""Functions that other libraries compute: what their ops are, apart from MLIR."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Any, cast

import numpy as np

from qdialect._mlir import ir
from qdialect.context import location_of
from qdialect.dialect import AnyFused, QnnOp
from qdialect.dialect.constants import CONSTANT_OPS, constant_value
from qdialect.dialect.stages.stage_base import Stage, attributes_of
from qdialect.dialect.type_constraints import dtype_of, shape_of
from qdialect.externals.function import (
    ExternalFunction,
    ExternalOperand,
    ExternalOperation,
    ExternalStage,
    Source,
    Value,
)
from qdialect.interface import Port
from qdialect.locations import names_of
from qdialect.lowering.errors import error_at, op_error
from qdialect.lowering.functions import MAIN, name_of
from qdialect.lowering.program import KERNEL
from qdialect.lowering.threads.barrier import WAIT
from qdialect.lowering.threads.team import TASK
from qdialect.passes.outlined import SYMBOL, TARGET, symbol_of, target_of
from qdialect.threads import SYMBOLS

_EPILOGUE = "epilogue"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Functions of the code itself, and of the runtime.
_TAKEN = (MAIN, TASK, "task", WAIT, *SYMBOLS)


def external_function(function: ir.Operation) -> ExternalFunction:
    """What the library is told that computes `function`, which was outlined for a target.

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
    return ExternalFunction(
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


def _operation(op: ir.Operation, computing: Sequence[ir.Operation], block: ir.Block) -> ExternalOperation:
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
    return ExternalOperation(op.name, operands, attributes, stages, result)


def _operand(
    view: QnnOp, name: str, value: ir.Value, computing: Sequence[ir.Operation], block: ir.Block
) -> ExternalOperand:
    port = _port(name, value.type, *_quantization(view, name))
    array = constant_value(value)
    if array is not None:
        return ExternalOperand(port, Source.CONSTANT, data=array)
    if value.owner == block:
        return ExternalOperand(port, Source.INPUT, ir.BlockArgument(value).arg_number)
    results: list[ir.Value] = [op.results[0] for op in computing]
    return ExternalOperand(port, Source.OPERATION, results.index(value))


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


def _input(operations: Sequence[ExternalOperation], index: int, type_: ir.Type) -> Port:
    readers = [
        operand.tensor
        for operation in operations
        for operand in operation.operands.values()
        if operand.source is Source.INPUT and operand.index == index
    ]
    known = readers[0] if readers else _port("", type_, None, None)
    return Port(f"input{index}", known.shape, known.dtype, known.scale, known.zero_point)


def _stage(stage: Stage) -> ExternalStage:
    values = {name: getattr(stage, name) for name in attributes_of(type(stage))}
    return ExternalStage(stage.name, {name: _plain(value) for name, value in values.items()})


def _value(value: object, op: ir.Operation) -> Value:
    plain = _plain(value)
    if isinstance(plain, int | float | str | tuple | np.ndarray):
        return cast("Value", plain)
    raise op_error(op, f"must have attributes of numbers and texts to be computed by an external function: {plain}")


def _plain(value: Any) -> Any:
    """A text of an enumeration, a number of a bool."""
    if isinstance(value, Enum):
        return str(value.value)
    return int(value) if isinstance(value, bool) else value


def _port(name: str, type_: ir.Type, scale: Any, zero_point: Any) -> Port:
    return Port(name, shape_of(type_), dtype_of(type_), scale, zero_point)
