"""`activation`: a function of f32 values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qdialect.dialect.attribute_kinds import F64, choice
from qdialect.dialect.op_base import require
from qdialect.dialect.stages.stage_base import Domain, Stage, StagePosition, kind, stage
from qdialect.quant_math.activations import STAGE_ACTIVATIONS, Activation

_LARGEST_ALPHA = 2.0**30


@stage("activation")
@dataclass(frozen=True, kw_only=True)
class ActivationStage(Stage):
    """``function(value)`` in the float32 operations of `qdialect.quant_math.activations`; `alpha` is its parameter.

    Constraints:
      C1: alpha must be 0 if the function has no parameter
      C2: alpha must be in [-2^30, 2^30]
    """

    takes: ClassVar[Domain] = Domain.F32
    leaves: ClassVar[Domain] = Domain.F32
    function: Activation = field(metadata=kind(choice(Activation, STAGE_ACTIVATIONS)))
    alpha: float = field(default=0.0, metadata=kind(F64))

    def check(self, position: StagePosition) -> None:
        alpha, path = self.alpha, position.path
        holds = self.function.has_alpha or alpha == 0
        require(holds, "C1", f"{path} alpha must be 0 for function {self.function}, but got {alpha}")
        require(abs(alpha) <= _LARGEST_ALPHA, "C2", f"{path} alpha must be in [-2^30, 2^30], but got {alpha}")
