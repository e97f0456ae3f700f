"""`lut`: quantized values are looked up in a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qdialect.dialect.attribute_kinds import TABLE
from qdialect.dialect.op_base import require
from qdialect.dialect.stages.stage_base import Domain, QuantizedStage, StagePosition, kind, stage
from qdialect.quant_math import Table


@stage("lut")
@dataclass(frozen=True, kw_only=True, eq=False)
class LutStage(QuantizedStage):
    """``table[value mod 256]``: indices and entries are bit patterns, whatever their element types.

    Constraints:
      C2: it must be the last stage
    """

    takes: ClassVar[Domain] = Domain.QUANTIZED
    table: Table = field(metadata=kind(TABLE))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LutStage) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        return self.scale, self.zero_point, self.element, self.table.tobytes()

    def check(self, position: StagePosition) -> None:
        super().check(position)
        require(position.is_channels_last, "C2", f"{position.path} must be the last stage, but another one follows it")
