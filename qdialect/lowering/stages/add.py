"""`add` in a kernel: quantized values and the residual, in the arithmetics of `qdialect.lowering.kernels.addition`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from qdialect.dialect.stages.add import AddStage
from qdialect.lowering.kernels.addition import Addition
from qdialect.lowering.kernels.quantization import Quantization
from qdialect.lowering.program import Kernel
from qdialect.lowering.stages.stage_kernel import Bounds, EmitStage, StageKernel, StageSite, lowers_stage
from qdialect.lowering.text.scalar_body import Body, Value


@lowers_stage(AddStage)
@dataclass(frozen=True)
class AddKernel(StageKernel):
    """The addition of a residual."""

    addition: Addition

    @classmethod
    def of(cls, site: StageSite) -> Self:
        stage = site.stage
        residual = Quantization(stage.residual_scale, stage.residual_zero_point, site.residual_shift)
        addition = Addition(
            site.before_quantization,
            residual,
            site.quantization,
            site.bounds,
            stage.arithmetic,
            stage.rounding,
            stage.multiplier,
            swapped=stage.residual_is_lhs,
            left=site.before_bounds,
        )
        return cls(addition)

    @classmethod
    def wanted_shift(cls, bounds: Bounds) -> int:
        return 0

    def declare(self, kernel: Kernel) -> EmitStage:
        add = self.addition.declare(kernel)

        def emit(body: Body, value: Value, _: Sequence[Value], residual: Value | None) -> Value:
            assert residual is not None, "the verifier has seen a residual"
            return add(body, value, residual)

        return emit
