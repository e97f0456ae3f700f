"""Evaluates the stages of an epilogue: from the values that a stage takes to those it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from qdialect import arithmetic
from qdialect.arithmetic.elementwise import add
from qdialect.dialect import FusedOp
from qdialect.dialect.stages import builtin_stages as stages
from qdialect.dialect.stages.stage_base import Stage
from qdialect.dialect.type_constraints import NUMPY_DTYPES, QuantizedType
from qdialect.reference.evaluators import Array
from qdialect.reference.qnn_evaluators import look_up


@dataclass(frozen=True)
class StageInputs:
    """The other inputs of a stage; `before` is the quantization of its values, if they are quantized."""

    op: FusedOp
    before: QuantizedType | None
    bias: Array
    """int32 or float32, of one entry for each channel; an int32 one is in the accumulators already."""
    residual: Array | None


StageEvaluator = Callable[[Any, Array, StageInputs], Array]
S = TypeVar("S", bound=Stage)

STAGE_EVALUATORS: dict[type[Stage], StageEvaluator] = {}


def evaluates_stage(stage_class: type[S]) -> Callable[[Callable[[S, Array, StageInputs], Array]], StageEvaluator]:
    """Register the decorated function as the meaning of a stage.

    Raises `ValueError` where the stage has a meaning already.
    """

    def register(evaluator: Callable[[S, Array, StageInputs], Array]) -> StageEvaluator:
        if stage_class in STAGE_EVALUATORS:
            raise ValueError(f"stage '{stage_class.name}' has an evaluator already")
        STAGE_EVALUATORS[stage_class] = evaluator
        return evaluator

    return register


evaluates_stage(stages.ActivationStage)(
    lambda stage, values, _: arithmetic.activate(stage.function, stage.alpha, values)
)


@evaluates_stage(stages.AddStage)
def _add(stage: stages.AddStage, values: Array, inputs: StageInputs) -> Array:
    assert inputs.residual is not None, "the verifier has seen a residual"
    assert inputs.before is not None, "the verifier has seen that values are quantized here"
    before, after = inputs.before, stage.quantized
    sides = [
        (values.astype(np.int64), arithmetic.QuantParams(before.scale, before.zero_point)),
        (inputs.residual, arithmetic.QuantParams(stage.residual_scale, stage.residual_zero_point)),
    ]
    if stage.residual_is_lhs:
        sides.reverse()
    (lhs, lhs_affine), (rhs, rhs_affine) = sides
    how = (stage.arithmetic, stage.rounding, stage.multiplier)
    output = arithmetic.QuantParams(after.scale, after.zero_point)
    return add(lhs, rhs, arithmetic.BinaryQuantization(lhs_affine, rhs_affine, output, after.range), *how)


evaluates_stage(stages.ClampStage)(lambda stage, values, _: np.clip(values, stage.min, stage.max))


@evaluates_stage(stages.DequantizeStage)
def _dequantize(stage: stages.DequantizeStage, accumulators: Array, inputs: StageInputs) -> Array:
    op = inputs.op
    scales = arithmetic.real_multiplier(op.input_scale, op.weight_scales, 1.0, stage.multiplier).astype(np.float32)
    values = accumulators.astype(np.float32) * scales
    return values if inputs.bias.dtype == np.int32 else values + inputs.bias


evaluates_stage(stages.LutStage)(
    lambda stage, values, _: look_up(stage.table, values, NUMPY_DTYPES[stage.quantized.element])
)


@evaluates_stage(stages.QuantizeStage)
def _quantize(stage: stages.QuantizeStage, values: Array, _: StageInputs) -> Array:
    after = stage.quantized
    return arithmetic.requantize_f32(values, after.scale, after.zero_point, *after.range, stage.rounding, stage.scaling)


@evaluates_stage(stages.RequantizeStage)
def _requantize(stage: stages.RequantizeStage, accumulators: Array, inputs: StageInputs) -> Array:
    op, after = inputs.op, stage.quantized
    multipliers = arithmetic.real_multiplier(op.input_scale, op.weight_scales, after.scale, stage.multiplier)
    parameters = arithmetic.requantize_parameters(stage.rounding, multipliers)
    return arithmetic.requantize(accumulators, parameters, after.zero_point, *after.range, stage.rounding)


@evaluates_stage(stages.SumStage)
def _sum(stage: stages.SumStage, values: Array, inputs: StageInputs) -> Array:
    assert inputs.residual is not None, "the verifier has seen a residual"
    return values + arithmetic.dequantize_array(inputs.residual, stage.residual_scale, stage.residual_zero_point, 0)
