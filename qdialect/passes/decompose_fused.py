"""`qnn-decompose-fused`: each fused op back into the separate ops, with the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from qdialect._mlir import ir
from qdialect.dialect import (
    CONTRACTION_CLASSES,
    AddOp,
    AnyFused,
    ClipOp,
    LutOp,
    RequantizeOp,
    build,
)
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, range_of, shape_of
from qdialect.passes.pattern import Pattern, PatternPass, Refusal, Rewriter
from qdialect.passes.real_stage import has_real_bias, spelled_out, spelling_obstacle
from qdialect.passes.registry import register
from qdialect.quant_math import RealScaling, ResidualPlace


class DecomposeFused(Pattern[AnyFused]):
    """One op for each stage: contraction, requantize, clip, add, lut; a stage that is absent leaves none.

    A stage of real numbers becomes dequantize, the float ops of its sums and its activation, and quantize.

    A fused op does not say whether a code between two stages is `i8` or `ui8`.  The result's type is taken where the
    stage's range fits it, else the other: both hold the same numbers, and a table reads the same bits of either.
    """

    name: ClassVar[str] = "decompose-fused"
    roots: ClassVar[tuple[str, ...]] = tuple(fused.OPERATION_NAME for fused in CONTRACTION_CLASSES)

    def check(self, op: AnyFused) -> AnyFused | Refusal:
        reason = None if op.real_scaling is RealScaling.NONE else spelling_obstacle(op)
        return Refusal(reason) if reason else op

    def rewrite(self, op: AnyFused, match: AnyFused, rewriter: Rewriter) -> None:
        with rewriter.before(op):
            accumulators = _contraction(op)
            value = _clipped(op, _codes(op, accumulators))
            if op.residual is not None and op.adds_codes:
                value = _sum(op, value, op.residual)
            if op.table is not None:
                value = _look_up(op, value)
        rewriter.replace(op, value)


def _contraction(op: AnyFused) -> ir.Value:
    contraction = CONTRACTION_CLASSES[type(op)]
    values = op.attribute_values()
    attributes = {name: values[name] for name in contraction.attribute_fields}
    bias = None if has_real_bias(op) else op.bias
    return build(contraction, op.data, op.weight, bias, element="i32", **attributes).output


def _codes(op: AnyFused, accumulators: ir.Value) -> ir.Value:
    """The codes of the first stage, unclamped."""
    element = _stage_element(op, "output")
    if op.real_scaling is not RealScaling.NONE:
        return spelled_out(op, accumulators, element)
    return build(
        RequantizeOp,
        accumulators,
        element=element,
        input_scale=op.input_scale,
        weight_scales=op.weight_scales,
        output_scale=op.output_scale,
        output_zero_point=op.output_zero_point,
        axis=len(shape_of(accumulators.type)) - 1,
        rounding=op.rounding,
        multiplier=op.multiplier,
    ).output


def _clipped(op: AnyFused, codes: ir.Value) -> ir.Value:
    if (op.output_min, op.output_max) == range_of(codes.type):
        return codes
    element = element_of(codes.type)
    return build(ClipOp, codes, element=element, min=op.output_min, max=op.output_max).output


def _sum(op: AnyFused, codes: ir.Value, residual: ir.Value) -> ir.Value:
    sides = [(codes, op.output_scale, op.output_zero_point), (residual, op.residual_scale, op.residual_zero_point)]
    if op.residual_place is ResidualPlace.LEFT:
        sides.reverse()
    (left, left_scale, left_point), (right, right_scale, right_point) = sides
    return build(
        AddOp,
        left,
        right,
        element=_stage_element(op, "sum"),
        lhs_scale=left_scale,
        lhs_zero_point=left_point,
        rhs_scale=right_scale,
        rhs_zero_point=right_point,
        output_scale=op.sum_scale,
        output_zero_point=op.sum_zero_point,
        output_min=op.sum_min,
        output_max=op.sum_max,
        arithmetic=op.sum_arithmetic,
        rounding=op.sum_rounding,
        multiplier=op.sum_multiplier,
    ).output


def _look_up(op: AnyFused, codes: ir.Value) -> ir.Value:
    return build(
        LutOp,
        codes,
        element=element_of(op.output.type),
        table=op.table,
        input_scale=op.sum_scale,
        input_zero_point=op.sum_zero_point,
        output_scale=op.table_scale,
        output_zero_point=op.table_zero_point,
    ).output


def _stage_element(op: AnyFused, stage: str) -> str:
    values = op.attribute_values()
    found = [values[f"{stage}_{name}"] for name in ("min", "max", "zero_point")]
    final = element_of(op.output.type)
    least, most = ELEMENT_RANGES[final]
    if all(least <= value <= most for value in found):
        return final
    return "ui8" if final == "i8" else "i8"


@register
@dataclass(frozen=True)
class DecomposeFusedPass(PatternPass):
    """Take fused ops apart into contraction, requantize, clip, add and lut, for a target that lacks them."""

    name: ClassVar[str] = "qnn-decompose-fused"

    def patterns(self) -> Sequence[Pattern[Any]]:
        return (DecomposeFused(),)
