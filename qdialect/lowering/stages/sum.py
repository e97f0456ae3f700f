"""`sum` in a kernel: f32 values plus the dequantized residual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from qdialect.dialect.stages.sum import SumStage
from qdialect.lowering.kernels.quantization import Quantization, declare_dequantize
from qdialect.lowering.program import Kernel
from qdialect.lowering.stages.stage_kernel import EmitStage, StageKernel, StageSite, lowers_stage
from qdialect.lowering.text.scalar_body import Body, Value


@lowers_stage(SumStage)
@dataclass(frozen=True)
class SumKernel(StageKernel):
    """What the stored residual means."""

    residual: Quantization

    @classmethod
    def of(cls, site: StageSite) -> Self:
        stage = site.stage
        return cls(Quantization(stage.residual_scale, stage.residual_zero_point, site.residual_shift))

    def declare(self, kernel: Kernel) -> EmitStage:
        dequantize = declare_dequantize(kernel, "residual", self.residual)

        def emit(body: Body, value: Value, _: Sequence[Value], residual: Value | None) -> Value:
            assert residual is not None, "the verifier has seen a residual"
            stored = body.cast("arith.extui", residual, "i32")
            return body.add(value, dequantize(body, stored))

        return emit
