"""`qnn-fuse-requantize`: a contraction and its requantization become one fused op."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from qdialect.dialect import FUSED_CLASSES, AnyContraction, AnyFused, RequantizeOp, build
from qdialect.dialect.contraction_ops import PlacedStage
from qdialect.dialect.stages.builtin_stages import RequantizeStage
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes import pattern
from qdialect.passes.fused_stages import bias_of, decomposes, quantized
from qdialect.passes.pattern import GraphPass, Replacement, refuse, require
from qdialect.passes.registry import register
from qdialect.passes.tabulate import is_eight_bit


class FuseRequantize(Replacement[AnyContraction]):
    """``requantize(contraction)`` with equal scales and an 8-bit result."""

    roots = ("qnn.requantize",)

    def check(self, op: RequantizeOp) -> AnyContraction | None:
        contraction = pattern.producer(op.input)
        if not isinstance(contraction, AnyContraction):
            return None
        refuse(pattern.second_use(contraction.output))
        require(is_eight_bit(op.output), f"must have an 8-bit result, but got {element_of(op.output.type)}")
        refuse(_parameter_mismatch(contraction, op) or pattern.not_constant(contraction, is_fused=True))
        return contraction

    def emit(self, op: RequantizeOp, match: AnyContraction) -> ir.Value:
        # Of scales that are one float32 number, the requantization may read more than that.
        scales: dict[str, Any] = {"input_scale": op.input_scale, "weight_scales": op.weight_scales}
        return build(
            FUSED_CLASSES[type(match)],
            *(match.data, match.weight, bias_of(match)),
            element=element_of(op.output.type),
            output_scale=op.output_scale,
            output_zero_point=op.output_zero_point,
            epilogue=(RequantizeStage(rounding=op.rounding, multiplier=op.multiplier),),
            **{**match.attribute_values(), **scales},
        ).output


@decomposes(RequantizeStage)
def _decompose(op: AnyFused, placed: PlacedStage, value: ir.Value) -> ir.Value:
    stage: Any = placed.stage
    after = quantized(placed.after)
    return build(
        RequantizeOp,
        value,
        element=after.element,
        input_scale=op.input_scale,
        weight_scales=op.weight_scales,
        output_scale=after.scale,
        output_zero_point=after.zero_point,
        axis=len(shape_of(value.type)) - 1,
        rounding=stage.rounding,
        multiplier=stage.multiplier,
    ).output


def _parameter_mismatch(contraction: AnyContraction, op: RequantizeOp) -> str | None:
    channels = shape_of(contraction.output.type)[-1]
    wanted, found = (np.broadcast_to(owner.weight_scales, channels) for owner in (contraction, op))
    last = len(shape_of(op.input.type)) - 1
    axis = last if len(op.weight_scales) == 1 else op.axis
    zero_points = tuple(0 for _ in op.input_zero_points)
    return (
        pattern.scale_difference("input_scale", contraction.input_scale, op.input_scale)
        or pattern.differences(axis=(last, axis))
        or pattern.scale_difference("weight_scales", tuple(wanted.tolist()), tuple(found.tolist()))
        or pattern.differences(input_zero_points=(zero_points, op.input_zero_points))
    )


@register
class FuseRequantizePass(GraphPass):
    """Fuse a requantization into the contraction that feeds it, which makes it one 8-bit op."""

    name: ClassVar[str] = "qnn-fuse-requantize"
    rewrites = (FuseRequantize,)
