"""Operands that kernels need to know when they are compiled."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.diagnostics import CompileError
from qdialect.dialect.constants import constant_value, missing_elements
from qdialect.lowering.errors import op_error


def required_constant(name: str, value: ir.Value) -> NDArray[Any]:
    """The array behind an operand that must be a constant; raises `CompileError`."""
    array = constant_value(value)
    if array is None:
        raise CompileError(f"{name} must be a constant to be compiled, but got a value that is known at run time only")
    return array


def check_elements(module: ir.Module) -> None:
    """Raise `CompileError` at the first constant of a function whose elements were elided."""
    functions = [op.operation for op in module.body.operations]
    blocks = [block for function in functions for region in function.regions for block in region.blocks]
    for operation in (op.operation for block in blocks for op in block.operations):
        problem = missing_elements(operation)
        if problem:
            raise op_error(operation, problem)


def known_number(value: ir.Value) -> float | None:
    """The one number of a constant; None where there are several, or where it is known at run time."""
    array = constant_value(value)
    if array is None or (array != array.flat[0]).any():
        return None
    return array.flat[0].item()
