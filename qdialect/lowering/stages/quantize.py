"""`quantize` in a kernel: f32 values scaled, rounded and limited to their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from qdialect.dialect.stages.quantize import QuantizeStage
from qdialect.lowering.kernels.quantization import declare_quantize
from qdialect.lowering.program import Kernel
from qdialect.lowering.stages.stage_kernel import EmitStage, StageKernel, StageSite, lowers_stage


@lowers_stage(QuantizeStage)
@dataclass(frozen=True)
class QuantizeKernel(StageKernel):
    """The quantization of the stage at a site."""

    site: StageSite

    @classmethod
    def of(cls, site: StageSite) -> Self:
        return cls(site)

    def declare(self, kernel: Kernel) -> EmitStage:
        site, stage = self.site, self.site.stage
        how = (site.bounds, stage.rounding, stage.scaling)
        quantize = declare_quantize(kernel, "output", site.quantization, *how)
        return lambda body, value, _, __: quantize(body, value)
