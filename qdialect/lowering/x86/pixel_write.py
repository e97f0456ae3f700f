"""Planes of bytes that are written as pixels -> permutes of two vectors.

n pixels of r bytes are n r bytes side by side: byte r i + j is that of plane j at pixel i.  A vector of 64 of them
takes r - 1 permutes, each of which adds the bytes of one plane; LLVM would go byte by byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect._mlir import ir
from qdialect.lowering.memory.strides import static_strides
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.flat_address import flat_address
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.memory import buffer_problem, transfer_problem
from qdialect.passes.pattern import MatchFailure

_VECTOR = 64
_PLANES = range(2, 5)


@dataclass(frozen=True)
class _Pixels:
    """Planes, [..., r, n], as `n` pixels of `r` bytes, from `indices` of `buffer` on."""

    planes: ir.Value
    buffer: ir.Value
    indices: list[ir.Value]


class PixelWrite(InstructionPattern[_Pixels]):
    """A write of bytes whose two innermost dimensions were exchanged, where pixels are contiguous."""

    name: ClassVar[str] = "pixel-write"
    root: ClassVar[str] = "vector.transfer_write"

    def check(self, op: ir.Operation) -> _Pixels | MatchFailure | None:
        value, buffer, *indices = op.operands
        transposition = b.defining(value, "vector.transpose")
        if transposition is None or not b.is_vector_of(value, 8) or len(b.shape_of(value)) < 2:
            return None
        *outer, pixels, planes = b.shape_of(value)
        if planes not in _PLANES:
            return None
        problem = buffer_problem(buffer) or transfer_problem(op, buffer, others=2)
        if problem:
            return MatchFailure(f"bytes {problem}")
        *first, last, other = b.order_of(transposition)
        if [*first, other, last] != [*range(len(outer) + 2)]:
            return MatchFailure("innermost dimensions alone must be exchanged")
        if any(size > 1 for size in outer) or pixels > _VECTOR:
            return MatchFailure(f"pixels must be one row of at most {_VECTOR}, but got {[*outer, pixels]}")
        strides = static_strides(ir.MemRefType(buffer.type)) or ()
        if strides[-2:] != (planes, 1) or min(strides) < 0:
            return MatchFailure(f"pixels must be contiguous, but got strides {list(strides)}")
        return _Pixels(transposition.operands[0], buffer, list(indices))

    def rewrite(self, op: ir.Operation, match: _Pixels) -> None:
        *outer, planes, pixels = b.shape_of(match.planes)
        rows = [_widened(b.extract(match.planes, [*[0] * len(outer), plane])) for plane in range(planes)]
        start, size = flat_address(match.buffer, match.indices), planes * pixels
        for first in range(0, size, _VECTOR):
            bytes_ = rows[0]
            for plane, row in enumerate(rows[1:], start=1):
                bytes_ = b.shuffle(bytes_, row, [_lane(plane, planes, first + at) for at in range(_VECTOR)])
            count = min(_VECTOR, size - first)
            whole = bytes_ if count == _VECTOR else b.shuffle(bytes_, bytes_, range(count))
            start.further(first).store(whole)


def _lane(plane: int, planes: int, position: int) -> int:
    """Where the byte at `position` of the pixels comes from: bytes put together so far, or the row of `plane`."""
    pixel, own = divmod(position, planes)
    if own == plane:
        return _VECTOR + pixel % _VECTOR
    return position % _VECTOR if plane > 1 else pixel % _VECTOR


def _widened(row: ir.Value) -> ir.Value:
    """A vector whose first lanes are those of `row`."""
    lanes = b.shape_of(row)[0]
    return row if lanes == _VECTOR else b.shuffle(row, row, [at % lanes for at in range(_VECTOR)])
