"""`vector.transpose` of rows of 32-bit numbers -> shuffles of two vectors, each one instruction.

Rows of 4 P numbers, of P parts of 128 bits, are a square of 4 P rows; fewer rows, or shorter ones, are filled up with
poison.  Numbers are unpacked twice within parts: of rows 4 g to 4 g + 3 vector 4 g + j has in its part l the numbers of
column 4 l + j.  For each j the parts of the P vectors 4 g + j are transposed as numbers were, with halves of the parts
of two vectors in place of unpacked ones.  That is log2(4 P) instructions a vector.

Lane by lane, LLVM finds instructions for the lanes of each result by themselves, two to three times as many, and keeps
most of their indices in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect._mlir import ir, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure

_BITS, _PART = 32, 4
_FEWEST = 4
"""Rows, and numbers of a row, from which on a square is worth its shuffles."""


@dataclass(frozen=True)
class Square:
    """So many rows of so many numbers each, in a square of `size`."""

    rows: int
    columns: int
    size: int


class TransposedSquare(InstructionPattern[Square]):
    """A transposition that exchanges the only two dimensions of a vector that are not 1."""

    name: ClassVar[str] = "transposed-square"
    root: ClassVar[str] = "vector.transpose"

    def __init__(self, lanes: int) -> None:
        """`lanes` are those of 32 bits of the widest vector."""
        self._lanes = lanes

    def check(self, op: ir.Operation) -> Square | MatchFailure | None:
        shape, bits = b.shape_of(op.operands[0]), ir.VectorType(op.operands[0].type).element_type
        moved = [axis for axis in b.order_of(op) if shape[axis] != 1]
        if moved == sorted(moved) or not (isinstance(bits, ir.F32Type) or b.is_integer(bits, _BITS)):
            return None
        if len(moved) != 2:
            return MatchFailure(f"all dimensions but two must be 1, but got {list(shape)}")
        columns, rows = (shape[axis] for axis in moved)
        if not (_FEWEST <= rows <= self._lanes and _FEWEST <= columns <= self._lanes):
            return MatchFailure(f"a square must have {_FEWEST} to {self._lanes} rows, but got {rows} of {columns}")
        size = next(size for size in (4, 8, 16) if size >= max(rows, columns))
        return Square(rows, columns, size)

    def rewrite(self, op: ir.Operation, match: Square) -> ir.Value:
        element = ir.VectorType(op.results[0].type).element_type
        source = vector.shape_cast(ir.VectorType.get([match.rows, match.columns], element), op.operands[0])
        rows = [_widened(b.extract(source, [row]), match.size) for row in range(match.rows)]
        rows += [_poison(rows[0].type)] * (match.size - match.rows)
        value = _poison(ir.VectorType.get([match.columns, match.rows], element))
        for column, own in enumerate(_transposed(rows)[: match.columns]):
            value = b.insert(_widened(own, match.rows), value, [column])
        return vector.shape_cast(op.results[0].type, value)


def _poison(type_: ir.Type) -> ir.Value:
    return b.emit("ub.poison", type_)


def _widened(row: ir.Value, lanes: int) -> ir.Value:
    """The first `lanes` numbers of a row; those beyond its end are any."""
    known = b.lanes_of(row)
    return row if known == lanes else b.shuffle(row, row, [lane if lane < known else -1 for lane in range(lanes)])


def _transposed(rows: list[ir.Value]) -> list[ir.Value]:
    """The columns of a square."""
    size = len(rows)
    fours: list[ir.Value] = []
    for row in range(0, size, _PART):
        low, high = (_unpacked(rows[i], rows[i + 1], 1) for i in (row, row + 2))
        fours += [vector for half in (0, 1) for vector in _unpacked(low[half], high[half], 2)]
    columns = [_transposed_parts(fours[j::_PART]) for j in range(_PART)]
    return [own[part] for part in range(size // _PART) for own in columns]


def _unpacked(first: ir.Value, second: ir.Value, width: int) -> tuple[ir.Value, ir.Value]:
    """`width` numbers of each in turn: from the first half of each part of 128 bits, and from the second."""
    size = b.lanes_of(first)
    found: list[ir.Value] = []
    for half in range(0, _PART, _PART // 2):
        starts = [part + half + i for part in range(0, size, _PART) for i in range(0, _PART // 2, width)]
        lanes = [source + start + i for start in starts for source in (0, size) for i in range(width)]
        found.append(b.shuffle(first, second, lanes))
    return found[0], found[1]


def _transposed_parts(vectors: list[ir.Value]) -> list[ir.Value]:
    """P vectors of P parts: vector l of the result has part l of each, for P of 1, 2 or 4."""
    if len(vectors) == 1:
        return vectors
    # Of neighbours the even parts, and the odd ones; then those of vectors further apart.
    pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
    even, odd = ([_parts(*pair, first) for pair in pairs] for first in (0, _PART))
    if len(vectors) == 2:
        return [even[0], odd[0]]
    return [_parts(half[0], half[1], first) for first in (0, _PART) for half in (even, odd)]


def _parts(first: ir.Value, second: ir.Value, start: int) -> ir.Value:
    """Every other part of two vectors, from the one at `start` on."""
    lanes = [part + i for part in range(start, 2 * b.lanes_of(first), 2 * _PART) for i in range(_PART)]
    return b.shuffle(first, second, lanes)
