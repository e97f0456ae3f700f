"""`quantize`: see `qdialect.quant_math.requantize_f32`."""

from __future__ import annotations

from qdialect.dialect.stages.quantize import QuantizeStage
from qdialect.quant_math import requantize_f32
from qdialect.reference.evaluators import Array
from qdialect.reference.stages.stage_evaluators import StageInputs, evaluates_stage


@evaluates_stage(QuantizeStage)
def _quantize(stage: QuantizeStage, values: Array, _: StageInputs) -> Array:
    after = stage.quantized
    return requantize_f32(values, after.scale, after.zero_point, *after.range, stage.rounding, stage.scaling)
