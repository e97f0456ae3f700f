"""The registry of stage evaluators: from the values a stage takes to those it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from qdialect.dialect import FusedOp
from qdialect.dialect.quantized_type import QuantizedType
from qdialect.dialect.stages.stage_base import Stage
from qdialect.reference.evaluators import Array


@dataclass(frozen=True)
class StageInputs:
    """What a stage may read beside its values; `before` is what these mean, where they are quantized."""

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
