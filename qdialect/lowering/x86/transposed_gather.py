"""`vector.gather` by transposed indices -> the transposed gather: vectorization leaves the order of loops there.

Element by element a gather knows no order, so that

  gather(transpose(i)) = transpose(gather(i)).

What looks tables up wants the integers that indices were cast from, and finds them behind the cast then.  Where the
result is transposed back, both transpositions are gone (`transpose_pair`).
"""

from __future__ import annotations

from typing import ClassVar

from qdialect._mlir import arith, ir, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.transpose_pair import Transposition
from qdialect.passes.pattern import MatchFailure


class TransposedGather(InstructionPattern[Transposition]):
    """A gather of every lane by transposed indices."""

    name: ClassVar[str] = "transposed-gather"
    root: ClassVar[str] = "vector.gather"

    def check(self, op: ir.Operation) -> Transposition | MatchFailure | None:
        _, _, indices, mask, _ = op.operands
        transposition = b.defining(indices, "vector.transpose")
        if transposition is None:
            return None
        if not b.is_all_true(mask):
            return MatchFailure("mask must be true in every lane")
        return Transposition(transposition.operands[0], b.order_of(transposition))

    def rewrite(self, op: ir.Operation, match: Transposition) -> ir.Value:
        table, base, _, _, _ = op.operands
        result, shape = ir.VectorType(op.results[0].type), b.shape_of(match.source)
        own = ir.VectorType.get(shape, result.element_type)
        mask = b.splat(ir.VectorType.get(shape, ir.IntegerType.get_signless(1)), 1)
        # No lane takes what stands for those that are masked.
        masked = ir.DenseElementsAttr.get_splat(own, _zero(result.element_type))
        operands = [table, base, match.source, mask, arith.constant(own, masked)]
        gathered = ir.Operation.create("vector.gather", results=[own], operands=operands).result
        return vector.transpose(result, gathered, match.order)


def _zero(type_: ir.Type) -> ir.Attribute:
    return ir.FloatAttr.get(type_, 0.0) if isinstance(type_, ir.F32Type) else ir.IntegerAttr.get(type_, 0)
