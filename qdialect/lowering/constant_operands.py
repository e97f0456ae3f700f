"""Operands that kernels need to know when they are compiled."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.diagnostics import CompileError
from qdialect.dialect.constants import constant_value


def required_constant(name: str, value: ir.Value) -> NDArray[Any]:
    """The array behind an operand that must be a constant; raises `CompileError`."""
    array = constant_value(value)
    if array is None:
        raise CompileError(f"{name} must be a constant to be compiled, but got a value that is known at run time only")
    return array
