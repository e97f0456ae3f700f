"""What the passes share that append a stage to the epilogue of a fused op."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect._mlir import ir
from qdialect.dialect import AnyFused
from qdialect.dialect.epilogue import shortened
from qdialect.dialect.quantized_type import QuantizedType
from qdialect.dialect.stages.stage_base import Stage
from qdialect.passes.matching import rebuilt
from qdialect.passes.pattern import PatternPass


class StageFusionPass(PatternPass):
    """A pass that fuses an op after a fused one as another stage of it.

    `fuse-qnn` runs every registered one, in the order of their names, between contractions with their clamps and the
    tables that end them.
    """


def resolved_stages(op: AnyFused) -> tuple[Stage, ...]:
    """The stages of `op`, each with everything said."""
    return tuple(placed.stage for placed in op.stages())


def with_stages(
    op: AnyFused, stages: Sequence[Stage], output: QuantizedType, residual: ir.Value | None = None
) -> AnyFused:
    """A copy of `op` at the insertion point with other stages, resolved ones, whose result means `output`.

    A `residual` becomes the residual operand of an op that lacks one.
    """
    operands = [*op.operation.operands, *([] if residual is None else [residual])]
    return rebuilt(
        op,
        *operands,
        element=output.element,
        output_scale=output.scale,
        output_zero_point=output.zero_point,
        epilogue=shortened(stages, output),
    )
