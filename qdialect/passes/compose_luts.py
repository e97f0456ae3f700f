"""`qnn-compose-luts`: a chain of 8-bit functions becomes one table, or the clamp or nothing that it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from qdialect._mlir import ir
from qdialect.dialect import UNARY_OPS, ClipOp, LutOp, RequantizeOp, UnaryOp, build
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.dialect.type_constraints import element_of
from qdialect.passes.canonicalize import RemoveIdentity
from qdialect.passes.compose_dag import ComposeDag
from qdialect.passes.fuse_clamp import Bounds, clamp_of
from qdialect.passes.lut_pattern import LutMatch, LutPattern, tabulated
from qdialect.passes.matching import producer, quantization_difference, second_use, users
from qdialect.passes.pattern import MatchFailure, Pattern, PatternPass, Rewriter
from qdialect.passes.registry import register
from qdialect.passes.tabulate import BINARY_NAMES, is_eight_bit_function
from qdialect.quant_math import QuantParams

Function = LutOp | UnaryOp | RequantizeOp | ClipOp


class ComposeChain(LutPattern):
    """``f(g(x))`` of two 8-bit functions is one table."""

    name: ClassVar[str] = "compose-chain"
    roots: ClassVar[tuple[str, ...]] = (
        *("qnn.lut", "qnn.clip", "qnn.requantize"),
        *(op.OPERATION_NAME for op in UNARY_OPS),
    )

    def check(self, op: Function) -> LutMatch | MatchFailure | None:
        inner = _function(producer(op.input))
        if inner is None or _function(op) is None or (isinstance(op, ClipOp) and isinstance(inner, ClipOp)):
            return None
        before, middle_out = _parameters(inner)
        middle_in, after = _parameters(op)
        reason = second_use(op.input) or _mismatch(middle_out, middle_in)
        if reason:
            return MatchFailure(reason)
        before, after = before or middle_in, after or middle_out
        # Two clips are left to the clamp: of two functions, one has parameters.
        assert before is not None
        assert after is not None
        return tabulated(op, inner.input, before, after)


class ComposeDiamond(LutPattern):
    """``x * f(x)`` and the like: a function of two tensors that are functions of one tensor is a table of that."""

    name: ClassVar[str] = "compose-diamond"
    roots: ClassVar[tuple[str, ...]] = BINARY_NAMES

    def check(self, op: BinaryOp) -> LutMatch | MatchFailure | None:
        source = _common_source(op)
        if source is None:
            return None
        lhs = _parameters_at_source(op, op.lhs, source, op.lhs_params)
        rhs = _parameters_at_source(op, op.rhs, source, op.rhs_params)
        if isinstance(lhs, MatchFailure):
            return lhs
        if isinstance(rhs, MatchFailure):
            return rhs
        reason = _mismatch(lhs, rhs)
        if reason:
            return MatchFailure(reason)
        return tabulated(op, source, lhs, op.output_params)


class LutToClip(Pattern[Bounds]):
    """A table that clamps and keeps the parameters is a clip."""

    name: ClassVar[str] = "lut-to-clip"
    roots: ClassVar[tuple[str, ...]] = ("qnn.lut",)

    def check(self, op: LutOp) -> Bounds | None:
        return clamp_of(op)

    def rewrite(self, op: LutOp, match: Bounds, rewriter: Rewriter) -> None:
        with rewriter.before(op):
            clip = build(ClipOp, op.input, element=element_of(op.output.type), min=match[0], max=match[1])
        rewriter.replace(op, clip.output)


def _function(op: ir.OpView | None) -> Function | None:
    if isinstance(op, LutOp | UnaryOp | RequantizeOp | ClipOp) and is_eight_bit_function(op):
        return op
    return None


def _parameters(op: Function) -> tuple[QuantParams | None, QuantParams | None]:
    """What the quantized values before and after `op` mean; a clip does not say."""
    if isinstance(op, ClipOp):
        return None, None
    if isinstance(op, RequantizeOp):
        return QuantParams(op.input_scale, next(iter(op.input_zero_points))), op.output_params
    return op.input_params, op.output_params


def _mismatch(first: QuantParams | None, second: QuantParams | None) -> str | None:
    if first is None or second is None:
        return None
    return quantization_difference("input", first, second)


def _common_source(op: BinaryOp) -> ir.Value | None:
    """The tensor of which both operands are functions, or the one operand twice."""
    before = [_function(producer(value)) for value in (op.lhs, op.rhs)]
    lefts, rights = (
        [value, *([] if function is None else [function.input])]
        for value, function in zip((op.lhs, op.rhs), before, strict=True)
    )
    # Nearest first: where one operand is used twice, the function before it stays.
    return next((left for left in lefts for right in rights if left == right), None)


def _parameters_at_source(
    op: BinaryOp, value: ir.Value, source: ir.Value, wanted: QuantParams
) -> QuantParams | MatchFailure:
    """The parameters of `source` for which `value`, an operand of `op`, has the parameters `wanted` of `op`."""
    if value == source:
        return wanted
    function = _function(producer(value))
    assert function is not None
    before, after = _parameters(function)
    outside = [user for user in users(value) if user != op]
    if outside:
        return MatchFailure(
            f"needs the result of '{function.operation.name}' alone, but '{outside[0].name}' uses it too"
        )
    reason = _mismatch(after, wanted)
    return MatchFailure(reason) if reason else before or wanted


@register
@dataclass(frozen=True)
class ComposeLutsPass(PatternPass):
    """Compose chains, diamonds and larger subgraphs of 8-bit functions of one tensor into one table each.

    A table that clamps becomes a clip; one that changes nothing is removed.
    """

    name: ClassVar[str] = "qnn-compose-luts"
    dependent_dialects = ()

    def patterns(self) -> Sequence[Pattern[Any]]:
        return (RemoveIdentity(), ComposeChain(), ComposeDiamond(), ComposeDag(), LutToClip())
