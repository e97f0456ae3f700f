"""`vector.contract` of u8 x s16 -> `vpmaddwd`: bytes of data by weights that are stored as words.

A K group is four bytes of data, which are the same in every lane: they are loaded and broadcast, and a mask and a shift
make two operands of words of them, of the even bytes and of the odd ones.  The weights lie accordingly, for each K
group and vector first the even taps of every lane, then the odd ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qdialect._mlir import ir
from qdialect.lowering.indexing_maps import at
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.dot_product import broadcast_taps
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.instruction_set import InstructionSet
from qdialect.lowering.x86.instructions.dot_products import widened
from qdialect.lowering.x86.narrow_contraction import WIDENED, NarrowContraction, factors_of, narrow_contraction
from qdialect.passes.pattern import MatchFailure

_PAIR = 2
_TAPS = 4


@dataclass(frozen=True)
class _Widened:
    """A contraction along pairs of taps of each lane."""

    found: NarrowContraction
    lanes: int


class WidenedDot(InstructionPattern[_Widened]):
    """A contraction of K groups of four bytes and words, whose weights lie by even and odd taps."""

    name: ClassVar[str] = "widened-dot"
    root: ClassVar[str] = "vector.contract"

    def __init__(self, instructions: InstructionSet) -> None:
        self._dots = instructions.word_dots

    def check(self, op: ir.Operation) -> _Widened | MatchFailure | None:
        if factors_of(op) is not WIDENED:
            return None
        found = narrow_contraction(op)
        if found is None or isinstance(found, MatchFailure):
            return found
        lanes = found.loops.extents[found.loops.result[-1]]
        if lanes not in self._dots:
            wanted = ", ".join(map(str, sorted(self._dots)))
            return MatchFailure(f"lanes of the result must be one of {wanted}, but got {lanes}")
        reason = _data_problem(found) or _weights_problem(found)
        return MatchFailure(reason) if reason else _Widened(found, lanes)

    def rewrite(self, op: ir.Operation, match: _Widened) -> ir.Value:
        found, loops, emit = match.found, match.found.loops, self._dots[match.lanes]
        pair, odd = found.data.loops[-2:]
        data, around, outer = _data(op, match), found.weights.loops[:-2], (*found.data.loops[:-2], odd)
        sums = {position: b.extract(found.start, position) for position in np.ndindex(*b.shape_of(found.start)[:-1])}
        others = [loop for loop in (*loops.result[:-1], *loops.reduced) if loop not in (*around, pair)]
        # Weights are loaded where they are used up: then they take one register at a time.
        for point in loops.points(around):
            weights = _weights(op, match, at(point, around))
            for other in loops.points(others):
                step = {**point, **other}
                position = at(step, loops.result[:-1])
                sums[position] = emit(sums[position], data[at(step, outer)], weights)
        result = found.start
        for position, own in sums.items():
            result = b.insert(own, result, position) if position else own
        return result


def _data_problem(found: NarrowContraction) -> str | None:
    """Why the innermost loops of the data are not pairs of four taps side by side, the same in every lane."""
    data, loops = found.data, found.loops
    if set(data.loops[-2:]) & set(loops.result) or [loops.extents[loop] for loop in data.loops[-2:]] != [_PAIR] * 2:
        return "innermost loops of the data must be two reductions of two taps"
    if data.read.moving[-2:] != (_PAIR, 1):
        return f"taps must lie side by side, but got {data.read.buffer.type}"
    return "data must be the same in every lane" if loops.result[-1] in data.loops else None


def _weights_problem(found: NarrowContraction) -> str | None:
    """Why the weights are not the even taps of every lane, then the odd ones."""
    (pair, odd), lane = found.data.loops[-2:], found.loops.result[-1]
    if found.weights.loops[-3:] != (odd, lane, pair):
        return "innermost loops of the weights must be odd taps, lanes and pairs"
    lanes = found.loops.extents[lane]
    whole = [_PAIR, lanes, _PAIR]
    is_dense = found.weights.read.moving[-3:] == (_PAIR * lanes, _PAIR, 1)
    if not is_dense or b.shape_of(found.weights.read.buffer)[-3:] != whole:
        return f"weights must lie side by side in their buffer, but got {found.weights.read.buffer.type}"
    return None


def _weights(op: ir.Operation, match: _Widened, position: Sequence[int]) -> ir.Value:
    """The words of all lanes at the indices of the loops around them."""
    side = match.found.weights
    with side.read.before(op):
        flat = b.collapse_inner(side.read.buffer, 2)
        return b.load(_PAIR * match.lanes, flat, _start(side.read.position([*position, 0, 0])))


def _start(indices: Sequence[ir.Value]) -> list[ir.Value]:
    """Indices of a buffer whose two innermost dimensions became one."""
    return [*indices[:-2], b.index(0)]


def _data(op: ir.Operation, match: _Widened) -> dict[tuple[int, ...], ir.Value]:
    """The even (0) and the odd (1) bytes of each K group as words for every lane, by its indices."""
    side = match.found.data
    outer = side.loops[:-2]
    found: dict[tuple[int, ...], ir.Value] = {}
    with side.read.before(op):
        flat = b.collapse_inner(side.read.buffer, 2)
        for point in match.found.loops.points(outer):
            position = at(point, outer)
            indices = _start(side.read.position([*position, 0, 0]))
            for odd, words in enumerate(widened(broadcast_taps(flat, indices, match.lanes, _TAPS))):
                found[*position, odd] = words
    return found
