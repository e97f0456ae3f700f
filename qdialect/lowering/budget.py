"""How much memory constants may take that a module writes down in a few characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect._mlir import ir
from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.errors import error_at
from qdialect.lowering.islands import MEMBERS

MAX_REPEATED = 1 << 26
"""Elements of all constants together that are one number repeated, and that kernels read from memory.

Constants that are written out are as long as the text or the file that has them.
"""


def check_repeated_constants(operations: Sequence[ir.Operation]) -> None:
    """Raise `CompileError` at the constant with which more than `MAX_REPEATED` elements would be stored."""
    total = 0
    for op in operations:
        if op.name not in CONSTANT_OPS or not _is_stored(op):
            continue
        total += math.prod(shape_of(op.results[0].type))
        if total > MAX_REPEATED:
            message = f"constants that repeat one number must have at most {MAX_REPEATED} elements together"
            raise error_at(op.location, f"'{op.name}' op {message} to be compiled, but got {total}")


def _is_stored(op: ir.Operation) -> bool:
    """Whether `op` repeats a number that a kernel reads element by element: element-wise ones keep it as a number."""
    value = op.attributes["value"]
    if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
        return False
    return any(use.owner.operation.name not in MEMBERS for use in op.results[0].uses)
