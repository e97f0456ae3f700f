"""`sum`: the dequantized residual is added to f32 values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qdialect.dialect.attribute_kinds import I64, SCALE
from qdialect.dialect.stages.stage_base import (
    Domain,
    Stage,
    StagePosition,
    check_residual_zero_point,
    kind,
    stage,
)


@stage("sum")
@dataclass(frozen=True, kw_only=True)
class SumStage(Stage):
    """``value + float32(residual - residual_zero_point) * float32(residual_scale)``: oneDNN's sum post-op.

    Constraints:
      C1: residual_zero_point must lie in the residual's range
    """

    takes: ClassVar[Domain] = Domain.F32
    leaves: ClassVar[Domain] = Domain.F32
    reads_residual: ClassVar[bool] = True
    residual_scale: float = field(metadata=kind(SCALE))
    residual_zero_point: int = field(metadata=kind(I64))

    def check(self, position: StagePosition) -> None:
        check_residual_zero_point("C1", position, self.residual_zero_point)
