"""`requantize`: see `qdialect.quant_math.requantize`."""

from __future__ import annotations

from qdialect.dialect.stages.requantize import RequantizeStage
from qdialect.quant_math import real_multiplier, requantize, requantize_parameters
from qdialect.reference.evaluators import Array
from qdialect.reference.stages.stage_evaluators import StageInputs, evaluates_stage


@evaluates_stage(RequantizeStage)
def _requantize(stage: RequantizeStage, accumulators: Array, inputs: StageInputs) -> Array:
    op, after = inputs.op, stage.quantized
    multipliers = real_multiplier(op.input_scale, op.weight_scales, after.scale, stage.multiplier)
    parameters = requantize_parameters(stage.rounding, multipliers)
    return requantize(accumulators, parameters, after.zero_point, *after.range, stage.rounding)
