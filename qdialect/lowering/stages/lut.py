"""`lut` in a kernel: an entry for each byte; entries outside the bounds of the index are those at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from qdialect.dialect.stages.lut import LutStage
from qdialect.lowering.kernels.table import declare_table, stored_table
from qdialect.lowering.program import Kernel
from qdialect.lowering.stages.stage_kernel import EmitStage, StageKernel, StageSite, lowers_stage
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math import Table


@lowers_stage(LutStage)
@dataclass(frozen=True)
class LutKernel(StageKernel):
    """The table between stored values."""

    takes_any_byte: ClassVar[bool] = True
    table: Table

    @classmethod
    def of(cls, site: StageSite) -> Self:
        low, high = (bound + site.before_shift for bound in site.before_bounds)
        stored = stored_table(site.stage.table, site.before_shift, site.shift)
        return cls(stored[np.clip(np.arange(256), low, high)])

    @property
    def leaves_byte(self) -> bool:
        return True

    def declare(self, kernel: Kernel) -> EmitStage:
        table = declare_table(kernel, self.table)

        def emit(body: Body, value: Value, _: Sequence[Value], __: Value | None) -> Value:
            index = body.cast("arith.index_cast", value, "index")
            return body.extract(table, index)

        return emit
