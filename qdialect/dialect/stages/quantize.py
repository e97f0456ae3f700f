"""`quantize`: f32 values become quantized values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qdialect.dialect.attribute_kinds import choice
from qdialect.dialect.op_base import require
from qdialect.dialect.stages.stage_base import Domain, QuantizedStage, StagePosition, kind, stage
from qdialect.quant_math import Rounding, Scaling


@stage("quantize")
@dataclass(frozen=True, kw_only=True)
class QuantizeStage(QuantizedStage):
    """``round(value / scale) + zero_point`` in float32, or ``value * (1 / scale)``, as `scaling` says.

    Ties and zero point are those of `rounding`, which rounds f32 values.

    Constraints:
      C2: rounding must be one that rounds f32 values
    """

    takes: ClassVar[Domain] = Domain.F32
    rounding: Rounding = field(default=Rounding.F32_RNE_ZP_LAST, metadata=kind(choice(Rounding)))
    scaling: Scaling = field(default=Scaling.DIVIDE, metadata=kind(choice(Scaling)))

    def check(self, position: StagePosition) -> None:
        super().check(position)
        wanted = f"{position.path} rounding must be one of f32 values"
        require(not self.rounding.is_fixed, "C2", f"{wanted}, but got {self.rounding}")
