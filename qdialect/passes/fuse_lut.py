"""`qnn-fuse-lut`: a table moves into the fused op that produces its input."""

from __future__ import annotations

from typing import Any, ClassVar

from qdialect.arithmetic import compose_tables
from qdialect.dialect import AnyFused, LutOp
from qdialect.dialect.contraction_ops import PlacedStage
from qdialect.dialect.stages.builtin_stages import LutStage
from qdialect.dialect.type_constraints import QuantizedType, element_of
from qdialect.ir._mlir import ir
from qdialect.passes.fused_stages import decomposes, quantized, resolved_stages, with_stages
from qdialect.passes.pattern import GraphPass, Replacement, producer, quantization_difference, refuse, second_use
from qdialect.passes.registry import register
from qdialect.passes.tabulate import LutMatch, lut


class FuseLut(Replacement[AnyFused]):
    """``lut(fused)``: the table becomes the last stage; a table already there is composed with it."""

    roots = ("qnn.lut",)

    def check(self, op: LutOp) -> AnyFused | None:
        fused = producer(op.input)
        if not isinstance(fused, AnyFused):
            return None
        refuse(second_use(op.input) or quantization_difference("input", fused.output_type, op.input_params))
        return fused

    def emit(self, op: LutOp, match: AnyFused) -> ir.Value:
        output = QuantizedType(op.output_scale, op.output_zero_point, element_of(op.output.type))
        stages, table = resolved_stages(match), op.table
        last = stages[-1]
        if isinstance(last, LutStage):
            stages, table = stages[:-1], compose_tables(last.table, table)
        return with_stages(match, (*stages, LutStage(table=table)), output).output


@decomposes(LutStage)
def _decompose(_: AnyFused, placed: PlacedStage, value: ir.Value) -> ir.Value:
    stage: Any = placed.stage
    after = quantized(placed.after)
    return lut(LutMatch(value, stage.table, quantized(placed.before), after), after.element)


@register
class FuseLutPass(GraphPass):
    """Fuse a table into the fused contraction that feeds it."""

    name: ClassVar[str] = "qnn-fuse-lut"
    rewrites = (FuseLut,)
