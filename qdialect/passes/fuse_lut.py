"""`qnn-fuse-lut`: a table moves into the fused op that produces its input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from qdialect.dialect import AnyFused, LutOp
from qdialect.dialect.type_constraints import element_of
from qdialect.passes.matching import producer, quantization_difference, rebuilt, second_use
from qdialect.passes.pattern import Pattern, PatternPass, Refusal, Rewriter
from qdialect.passes.registry import register
from qdialect.quant_math import compose_tables


class FuseLut(Pattern[AnyFused]):
    """``lut(fused)``: the table becomes the last stage; a table already there is composed with it."""

    name: ClassVar[str] = "fuse-lut"
    roots: ClassVar[tuple[str, ...]] = ("qnn.lut",)

    def check(self, op: LutOp) -> AnyFused | Refusal | None:
        fused = producer(op.input)
        if not isinstance(fused, AnyFused):
            return None
        before = (fused.table_scale, fused.table_zero_point)
        own = (op.input_scale, op.input_zero_point)
        reason = second_use(op.input) or quantization_difference("input", before, own)
        return Refusal(reason) if reason else fused

    def rewrite(self, op: LutOp, match: AnyFused, rewriter: Rewriter) -> None:
        with rewriter.before(op):
            fused = rebuilt(
                match,
                element=element_of(op.output.type),
                table=op.table if match.table is None else compose_tables(match.table, op.table),
                table_scale=op.output_scale,
                table_zero_point=op.output_zero_point,
            )
        rewriter.replace(op, fused.output)


@register
@dataclass(frozen=True)
class FuseLutPass(PatternPass):
    """Fuse a table into the fused contraction that feeds it."""

    name: ClassVar[str] = "qnn-fuse-lut"

    def patterns(self) -> Sequence[Pattern[Any]]:
        return (FuseLut(),)
