"""How kernels compute `requantize`, `lut`, `add`, `dequantize`, `activation`, `sum` and `quantize`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import Activation, Table, real_multiplier, requantize_parameters
from qdialect.arithmetic.activations import STAGE_ACTIVATIONS
from qdialect.dialect.stages import builtin_stages as stages
from qdialect.lowering.ir.functions import required_constant
from qdialect.lowering.qnn_to_linalg.bodies import quantization
from qdialect.lowering.qnn_to_linalg.bodies.addition import Addition
from qdialect.lowering.qnn_to_linalg.bodies.quantization import Requantizer, requantizer_of
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import emit_expression
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.lowering.qnn_to_linalg.stages.stage_kernel import Bounds, EmitStage, StageKernel, StageSite, lowers_stage
from qdialect.support.diagnostics import CompileError

# `requantize` in a kernel: the cheapest form that is exact, or the arithmetic of the rounding mode.
#
# A `Requantizer` leaves values outside their bounds. They are clamped to a byte where anything in a byte will do, which
# packing does by itself; as the last stage the byte is clamped to the bounds where these are narrower.

_BYTE = (0, 255)


@lowers_stage(stages.RequantizeStage)
@dataclass(frozen=True)
class RequantizeKernel(StageKernel):
    """Accumulators times their multipliers; without `requantizer` by the arithmetic `how`."""

    site: StageSite
    requantizer: Requantizer | None
    how: quantization.Requantization | None

    @classmethod
    def of(cls, site: StageSite) -> Self:
        op, stage, after = site.op, site.stage, site.quantization
        multipliers = real_multiplier(op.input_scale, op.weight_scales, after.scale, stage.multiplier)
        parameters = requantize_parameters(stage.rounding, multipliers)
        requantizer = requantizer_of(
            *(stage.rounding, parameters, after.zero_point, site.bounds, site.shift, site.accumulator_range), site.forms
        )
        if requantizer is not None:
            return cls(site, requantizer, None)
        low, high = site.accumulator_range
        return cls(
            site, None, quantization.requantization(stage.rounding, parameters, int(max(-low.min(), high.max())))
        )

    @property
    def leaves_byte(self) -> bool:
        return self.requantizer is not None and self.site.follower is None

    @property
    def offset(self) -> NDArray[np.int32]:
        return super().offset if self.requantizer is None else self.requantizer.offset

    def channel_parameters(self) -> list[tuple[str, NDArray[Any]]]:
        how = self.requantizer or self.how
        assert how is not None, "one of the two is there"
        return [(parameter.name, parameter.values) for parameter in how.parameters]

    def declare(self, kernel: Kernel) -> EmitStage:
        if self.requantizer is not None:
            return self._by_requantizer(kernel, self.requantizer)
        assert self.how is not None, "one of the two is there"
        site = self.site
        rescale = quantization.declare_rescale(kernel, self.how, site.quantization.zero_point, site.bounds, site.shift)
        return lambda body, acc, parameters, _: rescale(body, acc, parameters)

    def _by_requantizer(self, kernel: Kernel, requantizer: Requantizer) -> EmitStage:
        rescale, follower = requantizer.declare(kernel), self.site.follower
        limits = None
        if follower is not None and not follower.takes_any_byte:
            limits = kernel.limits(self.site.stored_bounds, "i32")
        finish = self._declare_byte(kernel) if follower is None else None

        def emit(body: Body, acc: Value, parameters: Sequence[Value], _: Value | None) -> Value:
            low, high = limits or (body.constant(bound, "i32") for bound in _BYTE)
            value = body.clamp(rescale(body, acc, parameters), low, high)
            return value if finish is None else finish(body, value)

        return emit

    def _declare_byte(self, kernel: Kernel) -> Callable[[Body, Value], Value]:
        """Emit the byte of a value, limited to bounds that are narrower."""
        bounds = self.site.stored_bounds
        if bounds == _BYTE:
            return lambda body, value: body.narrow(value)
        low, high = kernel.limits(bounds, "i8")

        def emit(body: Body, value: Value) -> Value:
            byte = body.narrow(value)
            return body.binary("arith.minui", body.binary("arith.maxui", byte, low), high)

        return emit


# `lut` in a kernel: an entry for each byte; indices are clamped to the bounds.


@lowers_stage(stages.LutStage)
@dataclass(frozen=True)
class LutKernel(StageKernel):
    """The table between stored values."""

    takes_any_byte: ClassVar[bool] = True
    table: Table

    @classmethod
    def of(cls, site: StageSite) -> Self:
        low, high = (bound + site.before_shift for bound in site.before_bounds)
        stored = quantization.stored_table(site.stage.table, site.before_shift, site.shift)
        return cls(stored[np.clip(np.arange(256), low, high)])

    @property
    def leaves_byte(self) -> bool:
        return True

    def declare(self, kernel: Kernel) -> EmitStage:
        table = quantization.declare_table(kernel, self.table)

        def emit(body: Body, value: Value, _: Sequence[Value], __: Value | None) -> Value:
            index = body.cast("arith.index_cast", value, "index")
            return body.extract(table, index)

        return emit


# `add` in a kernel: quantized values and the residual, in the arithmetics of
# `qdialect.lowering.qnn_to_linalg.bodies.addition`.


@lowers_stage(stages.AddStage)
@dataclass(frozen=True)
class AddKernel(StageKernel):
    """The addition of a residual."""

    addition: Addition

    @classmethod
    def of(cls, site: StageSite) -> Self:
        stage = site.stage
        residual = quantization.Quantization(stage.residual_scale, stage.residual_zero_point, site.residual_shift)
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


# `dequantize` in a kernel: accumulators times the f32 scales of their channels, plus an f32 bias.


@lowers_stage(stages.DequantizeStage)
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


@lowers_stage(stages.ActivationStage)
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


@lowers_stage(stages.SumStage)
@dataclass(frozen=True)
class SumKernel(StageKernel):
    """The quantization of the stored residual."""

    residual: quantization.Quantization

    @classmethod
    def of(cls, site: StageSite) -> Self:
        stage = site.stage
        return cls(quantization.Quantization(stage.residual_scale, stage.residual_zero_point, site.residual_shift))

    def declare(self, kernel: Kernel) -> EmitStage:
        dequantize = quantization.declare_dequantize(kernel, "residual", self.residual)

        def emit(body: Body, value: Value, _: Sequence[Value], residual: Value | None) -> Value:
            assert residual is not None, "the verifier has seen a residual"
            stored = body.cast("arith.extui", residual, "i32")
            return body.add(value, dequantize(body, stored))

        return emit


# `quantize` in a kernel: f32 values scaled, rounded and limited to their bounds.


@lowers_stage(stages.QuantizeStage)
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
        quantize = quantization.declare_quantize(kernel, "output", site.quantization, *how)
        return lambda body, value, _, __: quantize(body, value)
