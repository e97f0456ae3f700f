"""What the patterns that end in a table share."""

from __future__ import annotations

from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.dialect import LutOp, QnnOp, build
from qdialect.dialect.type_constraints import element_of
from qdialect.passes.pattern import Pattern, Rewriter
from qdialect.passes.tabulate import table_of
from qdialect.quant_math import QuantParams, Table


@dataclass(frozen=True)
class LutMatch:
    """A table of `source`, and what its indices and entries mean."""

    source: ir.Value
    table: Table
    input: QuantParams
    output: QuantParams


class LutPattern(Pattern[LutMatch]):
    """A pattern whose root becomes a `qnn.lut`."""

    def rewrite(self, op: QnnOp, match: LutMatch, rewriter: Rewriter) -> None:
        with rewriter.before(op):
            lut = build(
                LutOp,
                match.source,
                element=element_of(op.operation.results[0].type),
                table=match.table,
                input_scale=match.input.scale,
                input_zero_point=match.input.zero_point,
                output_scale=match.output.scale,
                output_zero_point=match.output.zero_point,
            )
        rewriter.replace(op, lut.output)


def tabulated(op: QnnOp, source: ir.Value, before: QuantParams, after: QuantParams) -> LutMatch:
    """The match for the result of `op` as a function of `source`."""
    return LutMatch(source, table_of(op.operation.results[0], source), before, after)
