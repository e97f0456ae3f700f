"""qnn -> linalg: a network becomes kernels over planned memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect import context
from qdialect._mlir import ir
from qdialect.dialect.type_constraints import TypeConstraint
from qdialect.lowering import handlers
from qdialect.lowering.errors import error_at
from qdialect.lowering.graph import GraphLowering
from qdialect.lowering.program import Step
from qdialect.lowering.storage import STORAGE_ELEMENTS
from qdialect.lowering.strategy import strategy_of
from qdialect.target import Target

_STORABLE = TypeConstraint(tuple(STORAGE_ELEMENTS))

__all__ = ["LinalgProgram", "handlers", "main_function", "qnn_to_linalg"]


@dataclass(frozen=True)
class LinalgProgram:
    """A module at the linalg phase, and what its `main` needs beside inputs and outputs."""

    module: ir.Module
    constants: NDArray[np.uint8]
    arena_bytes: int
    live_bytes: int
    weights_bytes: int
    steps: tuple[Step, ...]
    buffers: tuple[tuple[str, int], ...]
    kernels: int


def qnn_to_linalg(module: ir.Module, target: Target, clocked: bool = False) -> LinalgProgram:
    """Lower the one function of a `qnn` module; with `clocked`, its `main` reads the cycle counter around each call.

    Raises `CompileError` with a note for each op without a lowering.
    """
    with module.context, ir.Location.unknown():
        program = GraphLowering(main_function(module), strategy_of(target)).run()
        text, arena = program.render(clocked)
    lowered = context.parse(text, module.context, file_name="kernels")
    counts = program.steps(), program.buffers(), len(program.kernels)
    sizes = arena, program.live_bytes(), sum(program.packed_weights.values())
    return LinalgProgram(lowered, program.constants(), *sizes, *counts)


def main_function(module: ir.Module) -> ir.Operation:
    """The function to compile: `main`, or the only one; raises `CompileError`."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    named = [op for op in functions if ir.StringAttr(op.attributes["sym_name"]).value == "main"]
    chosen = named or functions
    if len(chosen) != 1:
        message = f"a module must have one function, or one named main, to be compiled, but got {len(functions)}"
        raise error_at([module.operation, *functions][-1].location, message)
    function = chosen[0]
    _check_signature(function)
    blocks = len(function.regions[0].blocks)
    if blocks != 1:
        raise error_at(function.location, f"a function must have one block to be compiled, but got {blocks}")
    return function


def _check_signature(function: ir.Operation) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    for kind, types in (("argument", type_.inputs), ("result", type_.results)):
        for index, found in enumerate(types):
            problem = _STORABLE.problem(found)
            if problem:
                message = f"{kind} {index} of a function must be {problem} to be compiled, but got {found}"
                raise error_at(function.location, message)
