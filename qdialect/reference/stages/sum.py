"""`sum`: f32 values plus the dequantized residual."""

from __future__ import annotations

from qdialect.dialect.stages.sum import SumStage
from qdialect.quant_math import dequantize_array
from qdialect.reference.evaluators import Array
from qdialect.reference.stages.stage_evaluators import StageInputs, evaluates_stage


@evaluates_stage(SumStage)
def _sum(stage: SumStage, values: Array, inputs: StageInputs) -> Array:
    assert inputs.residual is not None, "the verifier has seen a residual"
    return values + dequantize_array(inputs.residual, stage.residual_scale, stage.residual_zero_point, 0)
