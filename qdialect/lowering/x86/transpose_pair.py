"""Two transpositions -> one, or none where the second takes the first back.

With r = transpose(v, p), dimension k of r is dimension p(k) of v; dimension k of transpose(r, q) is dimension p(q(k)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qdialect._mlir import ir, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern


@dataclass(frozen=True)
class Transposition:
    """Of a vector, with the dimension of the vector that each dimension of the result is."""

    source: ir.Value
    order: list[int]


class TransposePair(InstructionPattern[Transposition]):
    """A transposition of a transposition."""

    name: ClassVar[str] = "transpose-pair"
    root: ClassVar[str] = "vector.transpose"

    def check(self, op: ir.Operation) -> Transposition | None:
        first = b.defining(op.operands[0], "vector.transpose")
        if first is None:
            return None
        inner = b.order_of(first)
        return Transposition(first.operands[0], [inner[axis] for axis in b.order_of(op)])

    def rewrite(self, op: ir.Operation, match: Transposition) -> ir.Value:
        if match.order == sorted(match.order):
            return match.source
        return vector.transpose(op.results[0].type, match.source, match.order)
