"""`lut`: entries of a table."""

from __future__ import annotations

from qdialect.dialect.stages.lut import LutStage
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.reference.evaluators import Array
from qdialect.reference.qnn_evaluators import look_up
from qdialect.reference.stages.stage_evaluators import StageInputs, evaluates_stage


@evaluates_stage(LutStage)
def _lut(stage: LutStage, values: Array, _: StageInputs) -> Array:
    return look_up(stage.table, values, NUMPY_DTYPES[stage.quantized.element])
