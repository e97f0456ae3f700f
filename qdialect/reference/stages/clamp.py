"""`clamp`: values limited to [min, max]."""

from __future__ import annotations

import numpy as np

from qdialect.dialect.stages.clamp import ClampStage
from qdialect.reference.evaluators import Array
from qdialect.reference.stages.stage_evaluators import StageInputs, evaluates_stage


@evaluates_stage(ClampStage)
def _clamp(stage: ClampStage, values: Array, _: StageInputs) -> Array:
    return np.clip(values, stage.min, stage.max)
