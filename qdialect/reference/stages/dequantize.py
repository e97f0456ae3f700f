"""`dequantize`: accumulators times the products of their scales, plus an f32 bias."""

from __future__ import annotations

import numpy as np

from qdialect.dialect.stages.dequantize import DequantizeStage
from qdialect.quant_math import real_multiplier
from qdialect.reference.evaluators import Array
from qdialect.reference.stages.stage_evaluators import StageInputs, evaluates_stage


@evaluates_stage(DequantizeStage)
def _dequantize(stage: DequantizeStage, accumulators: Array, inputs: StageInputs) -> Array:
    op = inputs.op
    scales = real_multiplier(op.input_scale, op.weight_scales, 1.0, stage.multiplier).astype(np.float32)
    values = accumulators.astype(np.float32) * scales
    return values if inputs.bias.dtype == np.int32 else values + inputs.bias
