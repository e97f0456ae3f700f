"""Whether the `main` of a module takes what the module says it takes: one that does not would be called wrongly."""

from __future__ import annotations

import math

from qdialect._mlir import ir
from qdialect.interface import Port
from qdialect.lowering.lowered import Lowered, error_at_module
from qdialect.lowering.to_gomp import is_divided

_ENTRY = "main"
_WORD_BYTES = 8


def check_entry(lowered: Lowered) -> None:
    """Raise `CompileError` where `main` of a module from phase `linalg` on is not what its attributes say.

    It takes the arrays of all inputs and outputs, the constants, the working memory, the readings of the clock if it is
    clocked and, in phase `llvm`, the number of threads that it may ask for if it is divided. Before phase `llvm` every
    argument has a size, which is checked too.
    """
    module = lowered.module
    functions = (op.operation for op in module.body.operations if "sym_name" in op.operation.attributes)
    named = [op for op in functions if ir.StringAttr(op.attributes["sym_name"]).value == _ENTRY]
    if not named or not named[0].regions[0].blocks:
        raise error_at_module(module, f"module must have a function '{_ENTRY}' with a body to be run")
    types = [argument.type for argument in named[0].regions[0].blocks[0].arguments]
    sizes = _sizes(lowered)
    if len(types) != len(sizes):
        raise error_at_module(module, f"function '{_ENTRY}' must take {len(sizes)} arguments, but takes {len(types)}")
    for index, (type_, size) in enumerate(zip(types, sizes, strict=True)):
        found = _bytes(type_)
        if found is not None and found > size:
            message = f"argument {index} of '{_ENTRY}' must have at most {size} bytes, but has {found}"
            raise error_at_module(module, message)


def _sizes(lowered: Lowered) -> list[int]:
    """Bytes of each argument, as the module's attributes say; what is empty has one all the same."""
    ports = [_port_bytes(port) for port in (*lowered.inputs, *lowered.outputs)]
    clock = [_WORD_BYTES * (len(lowered.calls) + 1)] if lowered.clocked else []
    team_limit = [_WORD_BYTES] if is_divided(lowered.module) else []
    return [*ports, max(lowered.constants.size, 1), max(lowered.arena_bytes, 1), *clock, *team_limit]


def _port_bytes(port: Port) -> int:
    return math.prod(port.shape) * port.dtype.itemsize


def _bytes(type_: ir.Type) -> int | None:
    """Size of a memref; None for a pointer, which has none."""
    if not isinstance(type_, ir.MemRefType) or not type_.has_static_shape:
        return None
    element = type_.element_type
    bits = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 8
    return math.prod(type_.shape) * bits // 8
