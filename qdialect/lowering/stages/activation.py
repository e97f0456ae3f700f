"""`activation` in a kernel: the float32 operations of `qdialect.quant_math.chains`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from qdialect.dialect.stages.activation import ActivationStage
from qdialect.lowering.kernels.activation_chain import emit_chain
from qdialect.lowering.program import Kernel
from qdialect.lowering.scalar_body import Body, Value
from qdialect.lowering.stages.stage_kernel import EmitStage, StageKernel, StageSite, lowers_stage
from qdialect.quant_math import Activation
from qdialect.quant_math.chains import CHAINS


@lowers_stage(ActivationStage)
@dataclass(frozen=True)
class ActivationKernel(StageKernel):
    """A function and its parameter."""

    function: Activation
    alpha: float

    @classmethod
    def of(cls, site: StageSite) -> Self:
        return cls(site.stage.function, site.stage.alpha)

    def declare(self, kernel: Kernel) -> EmitStage:
        alpha = kernel.number("alpha", self.alpha, "f32") if self.function.has_alpha else None

        def emit(body: Body, value: Value, _: Sequence[Value], __: Value | None) -> Value:
            return emit_chain(body, CHAINS[self.function], value, alpha)

        return emit
