"""`activation`: see `qdialect.quant_math.activations`."""

from __future__ import annotations

from qdialect.dialect.stages.activation import ActivationStage
from qdialect.quant_math import activate
from qdialect.reference.evaluators import Array
from qdialect.reference.stages.stage_evaluators import StageInputs, evaluates_stage


@evaluates_stage(ActivationStage)
def _activation(stage: ActivationStage, values: Array, _: StageInputs) -> Array:
    return activate(stage.function, stage.alpha, values)
