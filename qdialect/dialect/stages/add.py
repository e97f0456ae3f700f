"""`add`: the residual is added to quantized values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qdialect.dialect.attribute_kinds import BOOL, I64, SCALE, choice
from qdialect.dialect.stages.stage_base import (
    Domain,
    QuantizedStage,
    StagePosition,
    check_residual_zero_point,
    kind,
    stage,
)
from qdialect.quant_math import AddArithmetic, Multiplier, Rounding


@stage("add")
@dataclass(frozen=True, kw_only=True)
class AddStage(QuantizedStage):
    """`qnn.add` of the values and the residual, by the same `arithmetic`, `rounding` and `multiplier`.

    The values are its lhs, unless `residual_is_lhs`: ``float_once`` rounds differently with the sides exchanged.

    Constraints:
      C2: residual_zero_point must lie in the residual's range
    """

    takes: ClassVar[Domain] = Domain.QUANTIZED
    reads_residual: ClassVar[bool] = True
    residual_scale: float = field(metadata=kind(SCALE))
    residual_zero_point: int = field(metadata=kind(I64))
    residual_is_lhs: bool = field(default=False, metadata=kind(BOOL))
    arithmetic: AddArithmetic = field(default=AddArithmetic.REQUANTIZE_EACH, metadata=kind(choice(AddArithmetic)))
    rounding: Rounding = field(default=Rounding.FIXED64_UP, metadata=kind(choice(Rounding)))
    multiplier: Multiplier = field(default=Multiplier.F64, metadata=kind(choice(Multiplier)))

    def check(self, position: StagePosition) -> None:
        super().check(position)
        check_residual_zero_point("C2", position, self.residual_zero_point)
