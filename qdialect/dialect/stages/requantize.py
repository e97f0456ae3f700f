"""`requantize`: accumulators become quantized values by one multiplication."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qdialect.dialect.attribute_kinds import choice
from qdialect.dialect.stages.stage_base import Domain, QuantizedStage, kind, stage
from qdialect.quant_math import Multiplier, Rounding


@stage("requantize")
@dataclass(frozen=True, kw_only=True)
class RequantizeStage(QuantizedStage):
    """``round(accumulator * M) + zero_point`` with ``M = input_scale * weight_scales[channel] / scale``.

    `multiplier` says in which precision M is formed, `rounding` how the product with it is rounded and when the zero
    point is added.
    """

    takes: ClassVar[Domain] = Domain.ACCUMULATORS
    rounding: Rounding = field(metadata=kind(choice(Rounding)))
    multiplier: Multiplier = field(default=Multiplier.F64, metadata=kind(choice(Multiplier)))
