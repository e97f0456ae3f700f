"""Bytes that lie apart in two vectors -> two loads and a permute.

A `vector.transfer_read` of n bytes that are s apart spans (n - 1) s + 1 bytes.  Where these are at most two vectors,
the first and the last one of them hold all, and nothing beside them is read; LLVM would load byte by byte.
"""

from __future__ import annotations

from typing import ClassVar

from qdialect._mlir import ir, vector
from qdialect.lowering.memory.strides import static_strides
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.memory import Read, integer_read
from qdialect.passes.pattern import MatchFailure

_SIZES = (64, 32, 16, 8)
"""Bytes of a load."""


class StridedRead(InstructionPattern[Read]):
    """A read of one row of bytes that are a constant distance apart."""

    name: ClassVar[str] = "strided-read"
    root: ClassVar[str] = "vector.transfer_read"

    def check(self, op: ir.Operation) -> Read | MatchFailure | None:
        if not b.is_vector_of(op.results[0], 8) or not _is_row_apart(op):
            return None
        read = integer_read(op.results[0], "bytes", 8)
        if isinstance(read, MatchFailure):
            return read
        if min(read.strides) < 0:
            return MatchFailure(f"bytes must lie at strides that are not negative, but got {list(read.strides)}")
        span = _span(read)
        if not _SIZES[-1] <= span <= 2 * _SIZES[0]:
            return MatchFailure(f"bytes must span {_SIZES[-1]} to {2 * _SIZES[0]}, but got {span}")
        return read

    def rewrite(self, op: ir.Operation, match: Read) -> ir.Value:
        span, step = _span(match), match.strides[-1]
        size = next(size for size in _SIZES if size <= span)
        first, last = match.flat(), match.flat().further(span - size)
        order = [i * step if i * step < size else size + i * step - (span - size) for i in range(match.shape[-1])]
        bytes_ = vector.shuffle(first.load(size), last.load(size), order)
        return vector.shape_cast(op.results[0].type, bytes_)


def _is_row_apart(op: ir.Operation) -> bool:
    """Whether a transfer reads one row, of bytes that do not lie side by side."""
    type_, (*outer, count) = op.operands[0].type, b.shape_of(op.results[0]) or (1,)
    strides = static_strides(type_) if isinstance(type_, ir.MemRefType) else None
    return bool(strides) and strides[-1] not in (0, 1) and count > 1 and all(size == 1 for size in outer)


def _span(read: Read) -> int:
    return (read.shape[-1] - 1) * read.strides[-1] + 1
