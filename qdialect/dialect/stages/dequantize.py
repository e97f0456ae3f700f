"""`dequantize`: accumulators become the f32 values they stand for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qdialect.dialect.attribute_kinds import choice
from qdialect.dialect.stages.stage_base import Domain, Stage, kind, stage
from qdialect.quant_math import Multiplier


@stage("dequantize")
@dataclass(frozen=True, kw_only=True)
class DequantizeStage(Stage):
    """``float32(accumulator) * float32(input_scale * weight_scales[channel])``, plus the bias where that is f32.

    `multiplier` says in which precision the product of the scales is formed.
    """

    takes: ClassVar[Domain] = Domain.ACCUMULATORS
    leaves: ClassVar[Domain] = Domain.F32
    multiplier: Multiplier = field(default=Multiplier.F64, metadata=kind(choice(Multiplier)))
