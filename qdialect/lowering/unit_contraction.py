"""`vector.contract` of i32 that reduces one term -> multiply and add, element by element.

A depthwise tap is such a contraction: its reduction loops are tiled to one iteration, so every element of the tile gets
one product.  Upstream's lowering would take it apart into scalars.
"""

from __future__ import annotations

from typing import ClassVar

from qdialect._mlir import arith, ir
from qdialect.lowering.indexing_maps import Contraction, contraction_of
from qdialect.lowering.unit_product import spread
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure


class UnitContraction(InstructionPattern[Contraction]):
    """A contraction of i32 with one term for each element of the result."""

    name: ClassVar[str] = "unit-contraction"
    root: ClassVar[str] = "vector.contract"
    benefit: ClassVar[int] = 3

    def check(self, op: ir.Operation) -> Contraction | MatchFailure | None:
        loops = contraction_of(op)
        if loops.terms(loops.reduced) > 1 or not all(b.is_vector_of(value, 32) for value in op.operands):
            return None
        if loops.kind != "add":
            return MatchFailure(f"combining kind must be add, but got {loops.kind}")
        return loops

    def rewrite(self, op: ir.Operation, match: Contraction) -> ir.Value:
        lhs, rhs, acc = op.operands
        tile = b.shape_of(acc)
        left, right = spread(lhs, match.lhs, match, tile), spread(rhs, match.rhs, match, tile)
        return arith.addi(acc, arith.muli(left, right))
