"""A fused op's stage of real numbers: scale, bias, residual, activation, and the one rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernel_text import Body
from qdialect.lowering.kernels.body_machine import emit_shared
from qdialect.lowering.kernels.real_codes import Quantization, declare_code_of_real, declare_real
from qdialect.lowering.program import Kernel
from qdialect.quant_math import Activation, RealScaling, Rounding
from qdialect.quant_math.chains import CHAINS, Expression, Leaf, Step

EmitReal = Callable[[Body, str, Sequence[str], str | None], str]
"""(body, accumulator as i32, per-channel parameters, residual as i8) -> code as i32."""

_COMPARISONS = {"arith.maximumf": "ogt", "arith.minimumf": "olt"}


@dataclass(frozen=True)
class RealStage:
    """From accumulators to codes through float32, in the steps of `qdialect.reference.fused_evaluators`.

    `output` has the shift of the codes; `bounds` are those of the codes themselves.
    """

    scales: NDArray[np.float32]
    bias: NDArray[np.float32] | None
    residual: Quantization | None
    activation: Activation
    alpha: float
    output: Quantization
    bounds: tuple[int, int]
    rounding: Rounding
    scaling: RealScaling

    def channel_parameters(self) -> list[tuple[str, NDArray[Any]]]:
        """Per-channel arrays: name and values."""
        return [("scale", self.scales), *([] if self.bias is None else [("real_bias", self.bias)])]

    def declare(self, kernel: Kernel) -> EmitReal:
        """Declare the scalars as parameters of `kernel`."""
        read_residual = None if self.residual is None else declare_real(kernel, "residual", self.residual)
        alpha = kernel.number("alpha", self.alpha, "f32") if self.activation.has_alpha else ""
        to_code = declare_code_of_real(kernel, "output", self.output, self.bounds, self.rounding, self.scaling)

        def emit(body: Body, acc: str, parameters: Sequence[str], residual: str | None) -> str:
            real = body.binary("arith.mulf", body.cast("arith.sitofp", acc, "i32", "f32"), parameters[0], "f32")
            for bias in parameters[1:]:
                real = body.binary("arith.addf", real, bias, "f32")
            if read_residual is not None and residual is not None:
                code = body.cast("arith.extui", residual, "i8", "i32")
                real = body.binary("arith.addf", real, read_residual(body, code), "f32")
            if self.activation is not Activation.NONE:
                real = _emit(body, CHAINS[self.activation], real, alpha)
            return to_code(body, real)

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
