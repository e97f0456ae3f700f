"""`activation` in a kernel: the float32 steps of `qdialect.quant_math.chains`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from qdialect.dialect.stages.activation import ActivationStage
from qdialect.lowering.kernel_text import Body
from qdialect.lowering.kernels.body_machine import emit_shared
from qdialect.lowering.program import Kernel
from qdialect.lowering.stages.stage_kernel import EmitStage, StageKernel, StageSite, lowers_stage
from qdialect.quant_math import Activation
from qdialect.quant_math.chains import CHAINS, Expression, Leaf, Step

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
        alpha = kernel.number("alpha", self.alpha, "f32") if self.function.has_alpha else ""

        def emit(body: Body, value: str, _: Sequence[str], __: str | None) -> str:
            return _emit(body, CHAINS[self.function], value, alpha)

        return emit


def _emit(body: Body, expression: Expression, x: str, alpha: str) -> str:
    """The steps of an activation; a comparison is "greater than"."""
    if expression is Leaf.INPUT:
        return x
    if not isinstance(expression, Step):
        return alpha if isinstance(expression, Leaf) else body.constant(float(np.float32(expression)), "f32")
    operands = [_emit(body, operand, x, alpha) for operand in expression.operands]
    return _emit_step(body, expression.op, operands)


def _emit_step(body: Body, op: str, operands: Sequence[str]) -> str:
    if op in _COMPARISONS:
        # No operand is NaN, so that a comparison and a choice are enough.
        chosen = body.op(f"arith.cmpf {_COMPARISONS[op]}, {operands[0]}, {operands[1]} : f32")
        return body.op(f"arith.select {chosen}, {operands[0]}, {operands[1]} : f32")
    if op == "arith.cmpf":
        return body.op(f"arith.cmpf ogt, {operands[0]}, {operands[1]} : f32")
    if op.startswith("math."):
        return emit_shared(body, op, operands[0])
    return body.op(f"{op} {', '.join(operands)} : f32")
