"""`activation` in a kernel: the float32 operations of `qdialect.quant_math.activations`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from qdialect.dialect.stages.activation import ActivationStage
from qdialect.lowering.kernels.expression import emit_function, guarded
from qdialect.lowering.program import Kernel
from qdialect.lowering.stages.stage_kernel import EmitStage, StageKernel, StageSite, lowers_stage
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math import Activation
from qdialect.quant_math.activations import STAGE_ACTIVATIONS
from qdialect.quant_math.expressions import fold

_COMPARISONS = {"arith.maximumf": "ogt", "arith.minimumf": "olt"}


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
            return fold(
                guarded(STAGE_ACTIVATIONS[self.function]),
                (value,),
                alpha,
                lambda number: body.constant(float(np.float32(number)), "f32"),
                lambda op, operands: _emit_node(body, op, operands),
            )

        return emit


def _emit_node(body: Body, op: str, operands: Sequence[Value]) -> Value:
    """The ops of a node; a comparison is "greater than"."""
    if op in _COMPARISONS:
        # No operand is NaN, so that a comparison and a choice are enough.
        chosen = body.compare(_COMPARISONS[op], operands[0], operands[1])
        return body.select(chosen, operands[0], operands[1])
    if op == "arith.cmpf":
        return body.compare("ogt", operands[0], operands[1])
    if op == "arith.select":
        return body.select(*operands)
    if op.startswith("arith."):
        return body.unary(op, *operands) if len(operands) == 1 else body.binary(op, *operands)
    return emit_function(body, op, operands[0])
