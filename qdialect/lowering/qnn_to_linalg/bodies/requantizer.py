"""The cheapest requantization of an accumulator that is exact in an op's rounding mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import FloatMultiplier, IntArray, RequantizeParameters, Rounding
from qdialect.lowering.cost.strategy import NO_FORMS, RequantizerForms
from qdialect.lowering.qnn_to_linalg.bodies import fixed_point_multiplier
from qdialect.lowering.qnn_to_linalg.bodies.multiply_add_rounding import multiply_add_rounding
from qdialect.lowering.qnn_to_linalg.bodies.quantization import ROUND_HALF_EVEN, ROUND_HALF_UP
from qdialect.lowering.qnn_to_linalg.program.operands import Parameter
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, EmitRequantize, Value

# Well inside int32, which the conversion of a float must not leave.
_LARGEST = 2.0**30


class Requantizer(Protocol):
    """From accumulators to quantized values that are still to be clamped."""

    @property
    def offset(self) -> NDArray[np.int32]:
        """The addend of each channel's initial accumulator, or of all."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]: ...

    def declare(self, kernel: Kernel) -> EmitRequantize:
        """Declare what belongs to the tensor as parameters of `kernel`."""
        ...


@dataclass(frozen=True)
class FloatRequantizer:
    """A float32 rounding mode as it is defined, where no product leaves int32; `shift` is added to the result."""

    rounding: Rounding
    multiplier: NDArray[np.float32]
    zero_point: int
    shift: int

    @property
    def offset(self) -> NDArray[np.int32]:
        return np.zeros(1, np.int32)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (Parameter("multiplier", "f32", self.multiplier),)

    def declare(self, kernel: Kernel) -> EmitRequantize:
        is_channels_last = self.rounding is Rounding.F32_RNE_ZP_LAST
        own = None if is_channels_last else kernel.number("zero_point", self.zero_point, "f32")
        rest = kernel.number("rest", self.shift + (self.zero_point if is_channels_last else 0), "i32")
        round_ = ROUND_HALF_UP if self.rounding is Rounding.F32_UP_ZP_FIRST else ROUND_HALF_EVEN

        def emit(body: Body, acc: Value, parameters: Sequence[Value]) -> Value:
            value = body.multiply(body.cast("arith.sitofp", acc, "f32"), parameters[0])
            value = value if own is None else body.add(value, own)
            quantized = body.cast("arith.fptosi", round_(body, value), "i32")
            return body.add(quantized, rest)

        return emit


def requantizer_of(
    rounding: Rounding,
    params: RequantizeParameters,
    zero_point: int,
    bounds: tuple[int, int],
    shift: int,
    accumulator_range: tuple[IntArray, IntArray],
    forms: RequantizerForms = NO_FORMS,
) -> Requantizer | None:
    """The cheapest exact requantization plus `shift` for accumulators in `accumulator_range`; None if none is known.

    A float32 rounding mode is computed as it is defined, except for ties away from zero, which no instruction rounds.
    """
    if not isinstance(params, FloatMultiplier) or rounding is Rounding.F32_NEAREST_ZP_FIRST:
        steps = fixed_point_multiplier.shifted_thresholds(
            params, zero_point, bounds, shift, rounding, accumulator_range
        )
        if steps is None:
            return None
        near = fixed_point_multiplier.channel_multipliers(params, len(steps.low))
        found = multiply_add_rounding(steps, near, zero_point + shift) if forms.multiply_adds else None
        return found or fixed_point_multiplier.fixed_point_multiplier(steps, near)
    largest = max(-accumulator_range[0].min(), accumulator_range[1].max()) * float(params.m.max())
    return FloatRequantizer(rounding, params.m, zero_point, shift) if largest < _LARGEST else None
