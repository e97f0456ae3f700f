"""`qnn-fuse-residual`: an addition becomes the residual stage of a fused op that feeds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from qdialect.arithmetic import BinaryQuantization, QuantParams
from qdialect.dialect import AddOp, AnyFused, build
from qdialect.dialect.contraction_ops import PlacedStage
from qdialect.dialect.elementwise_ops import binary_attributes
from qdialect.dialect.stages.builtin_stages import AddStage, ClampStage, LutStage
from qdialect.dialect.type_constraints import QuantizedType, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes import pattern
from qdialect.passes.fused_stages import StageFusionPass, decomposes, quantized, resolved_stages, with_stages
from qdialect.passes.pattern import MatchFailure, Replacement, attempted, refuse, require
from qdialect.passes.registry import register


@dataclass(frozen=True)
class _Side:
    """One operand of the addition as the fused one, and the other with its parameters."""

    fused: AnyFused
    residual: ir.Value
    params: QuantParams
    residual_is_lhs: bool


class FuseResidual(Replacement[_Side]):
    """``add(fused, residual)``, either way round; where both operands are fused ops, into the later one."""

    roots = ("qnn.add",)

    def check(self, op: AddOp) -> _Side | None:
        lhs, rhs = (op.lhs, op.lhs_params), (op.rhs, op.rhs_params)
        answers = [attempted(_side, op, "lhs", lhs, rhs), attempted(_side, op, "rhs", rhs, lhs)]
        sides = [side for side in answers if isinstance(side, _Side)]
        if not sides:
            refuse(next((failure.reason for failure in answers if isinstance(failure, MatchFailure)), None))
            return None
        first, last = sides[0], sides[-1]
        return last if first.fused.is_before_in_block(last.fused) else first

    def emit(self, op: AddOp, match: _Side) -> ir.Value:
        output = QuantizedType(op.output_scale, op.output_zero_point, element_of(op.output.type))
        added = AddStage(
            residual_scale=match.params.scale,
            residual_zero_point=match.params.zero_point,
            residual_is_lhs=match.residual_is_lhs,
            arithmetic=op.arithmetic,
            rounding=op.rounding,
            multiplier=op.multiplier,
        )
        bounds = op.output_min, op.output_max
        clamp = () if bounds == output.range else (ClampStage(min=bounds[0], max=bounds[1]),)
        stages = (*resolved_stages(match.fused), added, *clamp)
        return with_stages(match.fused, stages, output, match.residual).output


def _side(op: AddOp, name: str, own: tuple[ir.Value, QuantParams], other: tuple[ir.Value, QuantParams]) -> _Side | None:
    """The operand `name` as the fused one; None where no fused op computes it."""
    (value, params), (residual, residual_params) = own, other
    fused = pattern.producer(value)
    if not isinstance(fused, AnyFused):
        return None
    _check_shapes(op, fused)
    refuse(_difference(op, fused, name, params))
    return _Side(fused, residual, residual_params, residual_is_lhs=name == "rhs")


def _difference(op: AddOp, fused: AnyFused, name: str, own: QuantParams) -> str | None:
    """How an operand's parameters differ from those of `fused`, which the sum is going to read instead."""
    before = fused.output_type
    if op.arithmetic.reads_doubles(op.multiplier):
        return pattern.differences(
            **{f"{name}_scale": (before.scale, own.scale), f"{name}_zero_point": (before.zero_point, own.zero_point)}
        )
    return pattern.quantization_difference(name, before, own)


def _check_shapes(op: AddOp, fused: AnyFused) -> None:
    has = "table" if isinstance(fused.epilogue[-1], LutStage) else "residual" if fused.residual is not None else ""
    require(not has, f"needs a fused op that ends in its clamp, but it has a {has}")
    lhs, rhs = (list(shape_of(value.type)) for value in (op.lhs, op.rhs))
    require(lhs == rhs, f"must have operands of one shape, but got {lhs} and {rhs}")
    refuse(pattern.second_use(fused.output))


@decomposes(AddStage)
def _decompose(op: AnyFused, placed: PlacedStage, value: ir.Value) -> ir.Value:
    stage: Any = placed.stage
    assert op.residual is not None, "the verifier has seen a residual"
    before, after = quantized(placed.before), quantized(placed.after)
    residual = QuantParams(stage.residual_scale, stage.residual_zero_point)
    sides = [(value, QuantParams(before.scale, before.zero_point)), (op.residual, residual)]
    if stage.residual_is_lhs:
        sides.reverse()
    (lhs, lhs_params), (rhs, rhs_params) = sides
    output = QuantParams(after.scale, after.zero_point)
    quantization = BinaryQuantization(lhs_params, rhs_params, output, after.range)
    return build(
        AddOp,
        lhs,
        rhs,
        element=after.element,
        **binary_attributes(quantization),
        arithmetic=stage.arithmetic,
        rounding=stage.rounding,
        multiplier=stage.multiplier,
    ).output


@register
class FuseResidualPass(StageFusionPass):
    """Fuse the addition of another tensor into the fused contraction that feeds it."""

    name: ClassVar[str] = "qnn-fuse-residual"
    dependent_dialects = ()
    rewrites = (FuseResidual,)
