"""`dequantize` in a kernel: accumulators times the f32 scales of their channels, plus an f32 bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from qdialect.diagnostics import CompileError
from qdialect.dialect.stages.dequantize import DequantizeStage
from qdialect.lowering.operands.constant_operands import required_constant
from qdialect.lowering.program import Kernel
from qdialect.lowering.stages.stage_kernel import EmitStage, StageKernel, StageSite, lowers_stage
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math import real_multiplier


@lowers_stage(DequantizeStage)
@dataclass(frozen=True)
class DequantizeKernel(StageKernel):
    """The f32 values of accumulators; an i32 bias is in these already."""

    scales: NDArray[np.float32]
    bias: NDArray[np.float32] | None

    @classmethod
    def of(cls, site: StageSite) -> Self:
        op = site.op
        bias = required_constant("bias", op.bias)
        if not np.all(np.isfinite(bias)):
            raise CompileError("bias must be finite to be compiled, but got an infinity or NaN")
        scales = real_multiplier(op.input_scale, op.weight_scales, 1.0, site.stage.multiplier).astype(np.float32)
        return cls(scales, bias if bias.dtype == np.float32 else None)

    def channel_parameters(self) -> list[tuple[str, NDArray[Any]]]:
        return [("scale", self.scales), *([] if self.bias is None else [("f32_bias", self.bias)])]

    def declare(self, kernel: Kernel) -> EmitStage:
        def emit(body: Body, acc: Value, parameters: Sequence[Value], _: Value | None) -> Value:
            value = body.multiply(body.cast("arith.sitofp", acc, "f32"), parameters[0])
            for bias in parameters[1:]:
                value = body.add(value, bias)
            return value

        return emit
