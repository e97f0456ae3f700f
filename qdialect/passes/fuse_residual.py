"""`qnn-fuse-residual`: an addition becomes the residual stage of a fused op that feeds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from qdialect._mlir import ir
from qdialect.dialect import AddOp, AnyFused
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.matching import Quantization, differences, producer, quantization_difference, rebuilt, second_use
from qdialect.passes.pattern import Pattern, PatternPass, Refusal, Rewriter
from qdialect.passes.registry import register
from qdialect.quant_math import ResidualPlace


@dataclass(frozen=True)
class _Side:
    """One operand of the addition as the fused one; `scale` and `zero_point` are those of the other, at `place`."""

    fused: AnyFused
    residual: ir.Value
    scale: float
    zero_point: int
    place: ResidualPlace


class FuseResidual(Pattern[_Side]):
    """``add(fused, residual)``, either way round; where both operands are fused ops, into the later one."""

    name: ClassVar[str] = "fuse-residual"
    roots: ClassVar[tuple[str, ...]] = ("qnn.add",)

    def check(self, op: AddOp) -> _Side | Refusal | None:
        answers = [side for side in (_left(op), _right(op)) if side is not None]
        sides = [side for side in answers if isinstance(side, _Side)]
        if not sides:
            return next(iter(answers), None)
        first, last = sides[0], sides[-1]
        return last if first.fused.is_before_in_block(last.fused) else first

    def rewrite(self, op: AddOp, match: _Side, rewriter: Rewriter) -> None:
        fused = match.fused
        with rewriter.before(op):
            summed = rebuilt(
                fused,
                *(fused.data, fused.weight, fused.bias, match.residual),
                element=element_of(op.output.type),
                residual_place=match.place,
                residual_scale=match.scale,
                residual_zero_point=match.zero_point,
                sum_arithmetic=op.arithmetic,
                sum_rounding=op.rounding,
                sum_multiplier=op.multiplier,
                sum_scale=op.output_scale,
                sum_zero_point=op.output_zero_point,
                sum_min=op.output_min,
                sum_max=op.output_max,
                table_scale=op.output_scale,
                table_zero_point=op.output_zero_point,
            )
        rewriter.replace(op, summed.output)


def _left(op: AddOp) -> _Side | Refusal | None:
    fused = producer(op.lhs)
    if not isinstance(fused, AnyFused):
        return None
    reason = _obstacle(op, fused) or _difference(op, fused, "lhs", (op.lhs_scale, op.lhs_zero_point))
    return Refusal(reason) if reason else _Side(fused, op.rhs, op.rhs_scale, op.rhs_zero_point, ResidualPlace.RIGHT)


def _right(op: AddOp) -> _Side | Refusal | None:
    fused = producer(op.rhs)
    if not isinstance(fused, AnyFused):
        return None
    reason = _obstacle(op, fused) or _difference(op, fused, "rhs", (op.rhs_scale, op.rhs_zero_point))
    return Refusal(reason) if reason else _Side(fused, op.lhs, op.lhs_scale, op.lhs_zero_point, ResidualPlace.LEFT)


def _difference(op: AddOp, fused: AnyFused, name: str, own: Quantization) -> str | None:
    """How an operand's parameters differ from those of `fused`, which the sum is going to read instead."""
    before = (fused.sum_scale, fused.sum_zero_point)
    if op.arithmetic.reads_doubles(op.multiplier):
        return differences(**{f"{name}_scale": (before[0], own[0]), f"{name}_zero_point": (before[1], own[1])})
    return quantization_difference(name, before, own)


def _obstacle(op: AddOp, fused: AnyFused) -> str | None:
    if fused.table is not None or fused.residual is not None:
        stage = "table" if fused.table is not None else "residual"
        return f"needs a fused op that ends in its clamp, but it has a {stage}"
    shapes = [shape_of(value.type) for value in (op.lhs, op.rhs)]
    if shapes[0] != shapes[1]:
        return f"must have operands of one shape, but got {list(shapes[0])} and {list(shapes[1])}"
    return second_use(fused.output)


@register
@dataclass(frozen=True)
class FuseResidualPass(PatternPass):
    """Fuse the addition of another tensor into the fused contraction that feeds it."""

    name: ClassVar[str] = "qnn-fuse-residual"

    def patterns(self) -> Sequence[Pattern[Any]]:
        return (FuseResidual(),)
