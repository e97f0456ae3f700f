"""The registry of stage decompositions: the ops that each stage stands for, beside the pass that fuses them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qdialect._mlir import ir
from qdialect.dialect import AnyFused
from qdialect.dialect.epilogue import PlacedStage
from qdialect.dialect.quantized_type import QuantizedType
from qdialect.dialect.stages.stage_base import Stage

BuildStage = Callable[[AnyFused, PlacedStage, ir.Value], ir.Value]
"""(fused op, stage, value that the stage takes) -> value that it leaves, by ops at the insertion point."""
Obstacle = Callable[[AnyFused, Any], str | None]
"""(fused op, stage) -> why the stage stands for no ops, None where it does."""


@dataclass(frozen=True)
class Decomposition:
    """How a stage is built, and what may prevent it."""

    build: BuildStage
    obstacle: Obstacle


DECOMPOSITIONS: dict[type[Stage], Decomposition] = {}


def decomposes(stage_class: type[Stage], obstacle: Obstacle | None = None) -> Callable[[BuildStage], BuildStage]:
    """Register the decorated function as what a stage stands for.

    Raises `ValueError` where the stage has a decomposition already.
    """

    def register(build: BuildStage) -> BuildStage:
        if stage_class in DECOMPOSITIONS:
            raise ValueError(f"stage '{stage_class.name}' has a decomposition already")
        DECOMPOSITIONS[stage_class] = Decomposition(build, obstacle or (lambda _, __: None))
        return build

    return register


def quantized(values: QuantizedType | None) -> QuantizedType:
    """`values`, for a stage that takes or leaves quantized ones."""
    assert values is not None, "the verifier has seen that values are quantized here"
    return values
