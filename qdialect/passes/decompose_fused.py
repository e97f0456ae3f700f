"""`qnn-decompose-fused`: each fused op back into the separate ops, with the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from qdialect.dialect import CONTRACTION_CLASSES, AnyFused, build
from qdialect.dialect.type_constraints import element_of
from qdialect.ir._mlir import ir
from qdialect.passes.fused_stages import DECOMPOSITIONS
from qdialect.passes.outlined import function_of, is_extern
from qdialect.passes.pattern import GraphPass, Pattern, Replacement, refuse
from qdialect.passes.registry import all_passes, register


class DecomposeFused(Replacement[AnyFused]):
    """A contraction, and the ops that each stage stands for."""

    roots = tuple(fused.OPERATION_NAME for fused in CONTRACTION_CLASSES)

    def check(self, op: AnyFused) -> AnyFused | None:
        if is_extern(function_of(op.operation)):
            return None
        for placed in op.stages():
            known = DECOMPOSITIONS.get(type(placed.stage))
            missing = f"has a stage '{placed.stage.name}' that stands for no ops"
            refuse(missing if known is None else known.obstacle(op, placed.stage))
        return op

    def emit(self, op: AnyFused, match: AnyFused) -> ir.Value:
        contraction = CONTRACTION_CLASSES[type(op)]
        values = op.attribute_values()
        attributes = {name: values[name] for name in contraction.attribute_fields}
        bias = op.bias if element_of(op.bias.type) == "i32" else None
        value = build(contraction, op.data, op.weight, bias, element="i32", **attributes).output
        for placed in op.stages():
            value = DECOMPOSITIONS[type(placed.stage)].build(op, placed, value)
        return value


@register
@dataclass(frozen=True)
class DecomposeFusedPass(GraphPass):
    """Decompose fused ops into a contraction and an op for each stage, for a target that lacks fused ops.

    `requantize` becomes `qnn.requantize`, `clamp` `qnn.clip`, `add` `qnn.add` and `lut` `qnn.lut`; stages of f32 values
    become `qnn.dequantize`, upstream float ops and `qnn.quantize`.  Ops that `qnn-outline-fused` has moved to a target
    stay fused.
    """

    name: ClassVar[str] = "qnn-decompose-fused"

    def patterns(self) -> Sequence[Pattern[Any]]:
        # The module of the pass that fuses a stage also has its decomposition.
        all_passes()
        return (DecomposeFused(),)
