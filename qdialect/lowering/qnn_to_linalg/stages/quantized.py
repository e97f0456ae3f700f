"""`requantize`, `lut` and `add` in a kernel: stages whose result is a quantized value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import Table, real_multiplier, requantize_parameters
from qdialect.dialect.stages.builtin_stages import AddStage, LutStage, RequantizeStage
from qdialect.lowering.qnn_to_linalg.bodies import quantization
from qdialect.lowering.qnn_to_linalg.bodies.addition import Addition
from qdialect.lowering.qnn_to_linalg.bodies.requantizer import Requantizer, requantizer_of
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import byte_literal
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.lowering.qnn_to_linalg.stages.stage_kernel import Bounds, EmitStage, StageKernel, StageSite, lowers_stage

# `requantize` in a kernel: the cheapest form that is exact, or the arithmetic of the rounding mode.
#
# A `Requantizer` leaves values outside their bounds. They are clamped to a byte where anything in a byte will do, which
# packing does by itself; as the last stage the byte is clamped to the bounds where these are narrower.

_BYTE = (0, 255)


@lowers_stage(RequantizeStage)
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
            named = zip(("low", "high"), self.site.stored_bounds, strict=True)
            limits = tuple(kernel.number(name, bound, "i32") for name, bound in named)
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
        low, high = (kernel.number(n, byte_literal(b), "i8") for n, b in zip(("low", "high"), bounds, strict=True))

        def emit(body: Body, value: Value) -> Value:
            byte = body.narrow(value)
            return body.binary("arith.minui", body.binary("arith.maxui", byte, low), high)

        return emit


# `lut` in a kernel: an entry for each byte; indices are clamped to the bounds.


@lowers_stage(LutStage)
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


@lowers_stage(AddStage)
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
