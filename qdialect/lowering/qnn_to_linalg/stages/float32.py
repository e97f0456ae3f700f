"""`dequantize`, `activation`, `sum` and `quantize` in a kernel: stages that compute in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import Activation, real_multiplier
from qdialect.arithmetic.activations import STAGE_ACTIVATIONS
from qdialect.dialect.stages.builtin_stages import ActivationStage, DequantizeStage, QuantizeStage, SumStage
from qdialect.lowering.qnn_to_linalg.bodies.float_functions import emit_expression
from qdialect.lowering.qnn_to_linalg.bodies.quantization import Quantization, declare_dequantize, declare_quantize
from qdialect.lowering.qnn_to_linalg.program.operands import required_constant
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.lowering.qnn_to_linalg.stages.stage_kernel import EmitStage, StageKernel, StageSite, lowers_stage
from qdialect.support.diagnostics import CompileError

# `dequantize` in a kernel: accumulators times the f32 scales of their channels, plus an f32 bias.


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


# `activation` in a kernel: the float32 operations of `qdialect.arithmetic.activations`.


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

        expression = STAGE_ACTIVATIONS[self.function]
        return lambda body, value, _, __: emit_expression(body, expression, value, alpha=alpha)


# `sum` in a kernel: f32 values plus the dequantized residual.


@lowers_stage(SumStage)
@dataclass(frozen=True)
class SumKernel(StageKernel):
    """The quantization of the stored residual."""

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


# `quantize` in a kernel: f32 values scaled, rounded and limited to their bounds.


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
