"""`clamp`: quantized values are limited to a part of their range."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qdialect.dialect.attribute_kinds import I64
from qdialect.dialect.op_base import require
from qdialect.dialect.stages.stage_base import Domain, Stage, StagePosition, kind, stage


@stage("clamp")
@dataclass(frozen=True, kw_only=True)
class ClampStage(Stage):
    """``clamp(value, min, max)``: relu, relu6 and clip become this stage.  Scale, zero point and element type do not
    change.

    Constraints:
      C1: min and max must be ordered and lie in the range of the values
    """

    takes: ClassVar[Domain] = Domain.QUANTIZED
    leaves: ClassVar[Domain] = Domain.QUANTIZED
    min: int = field(metadata=kind(I64))
    max: int = field(metadata=kind(I64))

    def check(self, position: StagePosition) -> None:
        assert position.before is not None, "the op's own constraints come first"
        low, high = position.before.range
        wanted = f"{position.path} min and max must be ordered and in [{low}, {high}]"
        require(low <= self.min <= self.max <= high, "C1", f"{wanted}, but got {self.min} and {self.max}")

    def narrowed(self, bounds: tuple[int, int]) -> tuple[int, int]:
        """`bounds` within those of the clamp."""
        return min(max(bounds[0], self.min), self.max), max(min(bounds[1], self.max), self.min)
