"""Transpositions of 16 x 16 numbers of 32 bits -> 64 shuffles of two registers each.

With rows r(0) to r(15) the first two steps interleave numbers, then pairs of them, of rows that follow each other, as
`vunpcklps` and `vunpcklpd` do within 128 bits: in

    t(i), t(i+1) = low, high numbers of r(i), r(i+1)                          i even
    u(i), u(i+1) = low, high pairs of t(i), t(i+2); u(i+2), u(i+3) those of t(i+1), t(i+3)     i a multiple of 4

quarter q of u(4 g + c) is column 4 q + c of rows 4 g to 4 g + 3.  Two more steps collect quarters: `vshuff32x4` takes
the even or the odd ones of two registers, first of g = 0 with 1 and 2 with 3, and then of what these are.

LLVM takes one shuffle of all 256 numbers apart into several times as many instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from qdialect._mlir import ir, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern

_SIDE, _QUARTER = 16, 4
_BITS = 32


class SquareTransposition(InstructionPattern[bool]):
    """A transposition that exchanges the only two dimensions of a vector that are not 1."""

    name: ClassVar[str] = "square-transposition"
    root: ClassVar[str] = "vector.transpose"

    def check(self, op: ir.Operation) -> bool | None:
        shape, order = b.shape_of(op.operands[0]), b.order_of(op)
        moved = [axis for axis in order if shape[axis] != 1]
        if moved == sorted(moved):
            return None
        element = ir.VectorType(op.results[0].type).element_type
        is_word = isinstance(element, ir.F32Type) or (isinstance(element, ir.IntegerType) and element.width == _BITS)
        return True if is_word and [shape[axis] for axis in moved] == [_SIDE, _SIDE] else None

    def rewrite(self, op: ir.Operation, match: bool) -> ir.Value:
        del match
        element = ir.VectorType(op.results[0].type).element_type
        square = ir.VectorType.get([_SIDE, _SIDE], element)
        source = vector.shape_cast(square, op.operands[0])
        columns = _transposed([b.extract(source, (row,)) for row in range(_SIDE)])
        for position, column in enumerate(columns):
            source = b.insert(column, source, (position,))
        return vector.shape_cast(op.results[0].type, source)


def _transposed(rows: Sequence[ir.Value]) -> list[ir.Value]:
    numbers = [one for i in range(0, _SIDE, 2) for one in _interleaved(rows[i], rows[i + 1], 1)]
    pairs = [
        one
        for i in range(0, _SIDE, _QUARTER)
        for k in (i, i + 1)
        for one in _interleaved(numbers[k], numbers[k + 2], 2)
    ]
    columns: dict[int, ir.Value] = {}
    for c in range(_QUARTER):
        first, second = _quarters(pairs[c], pairs[4 + c]), _quarters(pairs[8 + c], pairs[12 + c])
        for odd in (0, 1):
            columns[4 * odd + c], columns[8 + 4 * odd + c] = _quarters(first[odd], second[odd])
    return [columns[column] for column in range(_SIDE)]


def _interleaved(first: ir.Value, second: ir.Value, size: int) -> tuple[ir.Value, ir.Value]:
    """Of each 128 bits the low and the high halves, `size` numbers of one and of the other in turn."""

    def half(start: int) -> ir.Value:
        lanes = [start + k * size + lane for k in range(2 // size) for lane in range(size)]
        groups = [lanes[k : k + size] for k in range(0, 2, size)]
        taken = [lane + other for group in groups for other in (0, _SIDE) for lane in group]
        return b.shuffle(first, second, [q * _QUARTER + lane for q in range(_QUARTER) for lane in taken])

    return half(0), half(2)


def _quarters(first: ir.Value, second: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The even and the odd quarters of both."""

    def of(start: int) -> ir.Value:
        taken = [start, start + 2, start + 4, start + 6]
        return b.shuffle(first, second, [q * _QUARTER + lane for q in taken for lane in range(_QUARTER)])

    return of(0), of(1)
