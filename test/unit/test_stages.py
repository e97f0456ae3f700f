"""Every stage of an epilogue is defined, evaluated, lowered and decomposed, each in one file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from graphs import failures, graph
from quantized_layers import fused

from qdialect.dialect.stages.builtin_stages import ClampStage, LutStage
from qdialect.dialect.stages.stage_base import STAGES, Domain, Stage, stage
from qdialect.lowering.qnn_to_linalg.contractions import epilogue
from qdialect.lowering.qnn_to_linalg.stages.quantized import LutKernel
from qdialect.lowering.qnn_to_linalg.stages.stage_kernel import STAGE_KERNELS, lowers_stage
from qdialect.passes.decompose_fused import DecomposeFusedPass
from qdialect.passes.fused_stages import DECOMPOSITIONS, decomposes
from qdialect.passes.registry import all_passes
from qdialect.reference import contraction_evaluators
from qdialect.reference.stages.stage_evaluators import STAGE_EVALUATORS, evaluates_stage

# Imported for what they register.
_REGISTERED = (epilogue, contraction_evaluators, all_passes())


@dataclass(frozen=True, kw_only=True)
class NothingStage(Stage):
    """What nobody evaluates, lowers or takes apart."""

    takes: ClassVar[Domain] = Domain.QUANTIZED
    leaves: ClassVar[Domain] = Domain.QUANTIZED


def test_every_stage_is_complete() -> None:
    known = set(STAGES.values())
    assert known == set(STAGE_EVALUATORS)
    assert known == set(DECOMPOSITIONS)
    # A clamp bounds the stage before it.
    assert known == {*STAGE_KERNELS, ClampStage}


def meaning(_: Any, values: Any, __: Any) -> Any:
    return values


DUPLICATES: dict[str, tuple[Callable[[], object], str]] = {
    "name": (lambda: stage("lut")(NothingStage), "stage 'lut' is registered already, by LutStage"),
    "evaluator": (lambda: evaluates_stage(LutStage)(meaning), "stage 'lut' has an evaluator already"),
    "kernel": (lambda: lowers_stage(LutStage)(LutKernel), "stage 'lut' is lowered already, by LutKernel"),
    "decomposition": (lambda: decomposes(LutStage)(meaning), "stage 'lut' has a decomposition already"),
}


@pytest.mark.parametrize(("register", "message"), DUPLICATES.values(), ids=DUPLICATES)
def test_nothing_is_registered_twice(register: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        register()


def test_a_stage_without_decomposition_is_a_match_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(DECOMPOSITIONS, ClampStage)
    module = graph(["tensor<1x6x7x4xui8>"], lambda x: fused(x, "ui8", ClampStage(min=3, max=9)))
    assert failures(module, DecomposeFusedPass()) == [
        "[decompose-fused] 'qnn.fused_conv2d' has a stage 'clamp' that stands for no ops"
    ]
