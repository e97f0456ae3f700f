"""The epilogue of a fused op: its stages as one attribute, their order, and the quantization of values between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qdialect.dialect.fields import AttributeKind
from qdialect.dialect.op_base import require
from qdialect.dialect.stages import stage_base
from qdialect.dialect.stages.builtin_stages import DequantizeStage
from qdialect.dialect.stages.stage_base import Domain, QuantizedType, Stage, StagePosition
from qdialect.ir._mlir import ir

EPILOGUE: AttributeKind[tuple[Stage, ...]] = AttributeKind(
    "a non-empty array of stages {name} or {name = {attributes}}",
    lambda value: ir.ArrayAttr.get([stage_base.encoded(stage) for stage in value]),
    lambda attribute: tuple(stage_base.decoded(one) for one in ir.ArrayAttr(attribute)),
    lambda one: isinstance(one, ir.ArrayAttr) and len(one) > 0 and all(map(stage_base.is_stage, one)),
)
"""Stages as in their text: `placed_stages` fills in the defaults."""


@dataclass(frozen=True)
class PlacedStage:
    """A resolved stage, and what the values mean before and after it; None where they are not quantized."""

    stage: Stage
    before: QuantizedType | None
    after: QuantizedType | None


def placed_stages(epilogue: Sequence[Stage], output: QuantizedType) -> list[PlacedStage]:
    """The stages in order, with the attributes that `output` implies."""
    placed: list[PlacedStage] = []
    before = None
    for stage in epilogue:
        resolved = stage.resolved(output)
        after = resolved.meaning(before)
        placed.append(PlacedStage(resolved, before, after))
        before = after
    return placed


def shortened(epilogue: Sequence[Stage], output: QuantizedType) -> tuple[Stage, ...]:
    """Resolved stages without the fields that `output` implies."""
    return tuple(stage.shortened(output) for stage in epilogue)


def check_epilogue(attribute: ir.Attribute, output: QuantizedType, bias: str, residual: str | None) -> None:
    """Constraints C8 to C12 of a fused op, then those of each stage.

    `bias` and `residual` are element types; without a residual the latter is None.
    """
    for index, one in enumerate(ir.ArrayAttr(attribute)):
        violation = next(stage_base.violations(one), None)
        require(violation is None, "C8", f"epilogue[{index}] {violation}")
    placed = placed_stages(EPILOGUE.from_attribute(attribute), output)
    _check_order([one.stage for one in placed])
    _check_residual([one.stage for one in placed], residual)
    first = placed[0].stage
    holds = bias == "i32" or isinstance(first, DequantizeStage)
    require(holds, "C12", f"bias element type must be i32 where the first stage is '{first.name}', but got {bias}")
    for index, one in enumerate(placed):
        path = f"epilogue[{index}] '{one.stage.name}'"
        one.stage.check(StagePosition(path, one.before, residual, index == len(placed) - 1))
    _check_result(placed[-1], output)


def _check_order(stages: Sequence[Stage]) -> None:
    found = Domain.ACCUMULATORS
    for index, stage in enumerate(stages):
        wanted = f"epilogue[{index}] '{stage.name}' must follow {stage.takes}"
        require(stage.takes is found, "C9", f"{wanted}, but got {found}")
        found = stage.leaves
    require(found is Domain.QUANTIZED, "C10", f"epilogue must end with quantized values, but got {found}")


def _check_residual(stages: Sequence[Stage], residual: str | None) -> None:
    readers = [stage.name for stage in stages if stage.reads_residual]
    names = ", ".join(f"'{name}'" for name in readers) or "none"
    if residual is None:
        require(not readers, "C11", f"without a residual no stage must read it, but got {names}")
    else:
        require(len(readers) == 1, "C11", f"residual must be read by one stage, but got {names}")


def _check_result(last: PlacedStage, output: QuantizedType) -> None:
    after = last.after
    assert after is not None, "the last stage leaves quantized values"
    for name in ("scale", "zero_point", "element"):
        wanted, found = getattr(output, name), getattr(after, name)
        text = f"epilogue must end with the result's {name} {wanted}, but got {found}"
        require(found == wanted, "C10", text)
