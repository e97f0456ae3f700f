"""Evaluators of the fused ops: accumulators, and the stages of the epilogue one after the other."""

from __future__ import annotations

import numpy as np

from qdialect.dialect import CONTRACTION_CLASSES, AnyFused
from qdialect.dialect.type_constraints import dtype_of
from qdialect.reference import stages
from qdialect.reference.contraction_evaluators import accumulators
from qdialect.reference.evaluators import Array, Arrays, evaluates
from qdialect.reference.stages.stage_evaluators import STAGE_EVALUATORS, StageInputs

# Imported for the evaluators that its modules register.
_REGISTERED = stages


@evaluates(*CONTRACTION_CLASSES)
def _fused(op: AnyFused, operands: Arrays) -> Array:
    data, weight, bias, *rest = operands
    # A bias of integers belongs to the accumulators, one of f32 does not.
    values = accumulators(op, data, weight, bias if bias.dtype == np.int32 else None)
    residual = rest[0] if rest else None
    for placed in op.stages():
        inputs = StageInputs(op, placed.before, bias, residual)
        values = STAGE_EVALUATORS[type(placed.stage)](placed.stage, values, inputs)
    return values.astype(dtype_of(op.operation.results[0].type))
