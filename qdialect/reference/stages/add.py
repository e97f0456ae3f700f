"""`add`: see `qdialect.quant_math.elementwise.add`."""

from __future__ import annotations

import numpy as np

from qdialect.dialect.stages.add import AddStage
from qdialect.quant_math import BinaryQuantization, QuantParams
from qdialect.quant_math.elementwise import add
from qdialect.reference.evaluators import Array
from qdialect.reference.stages.stage_evaluators import StageInputs, evaluates_stage


@evaluates_stage(AddStage)
def _add(stage: AddStage, values: Array, inputs: StageInputs) -> Array:
    assert inputs.residual is not None, "the verifier has seen a residual"
    assert inputs.before is not None, "the verifier has seen that values are quantized here"
    before, after = inputs.before, stage.quantized
    sides = [
        (values.astype(np.int64), QuantParams(before.scale, before.zero_point)),
        (inputs.residual, QuantParams(stage.residual_scale, stage.residual_zero_point)),
    ]
    if stage.residual_is_lhs:
        sides.reverse()
    (lhs, lhs_affine), (rhs, rhs_affine) = sides
    how = (stage.arithmetic, stage.rounding, stage.multiplier)
    output = QuantParams(after.scale, after.zero_point)
    return add(lhs, rhs, BinaryQuantization(lhs_affine, rhs_affine, output, after.range), *how)
