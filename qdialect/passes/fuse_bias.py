"""`qnn-fuse-bias`: a constant added to the accumulators of each channel becomes the contraction's bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect import AnyContraction
from qdialect.dialect.constants import constant, constant_value
from qdialect.passes.matching import producer, rebuilt, second_use
from qdialect.passes.pattern import Pattern, PatternPass, Refusal, Rewriter
from qdialect.passes.registry import register


@dataclass(frozen=True)
class _Match:
    contraction: AnyContraction
    bias: NDArray[np.int32]


class FuseBias(Pattern[_Match]):
    """``contraction + constant`` where the constant depends on the channel alone; an earlier constant bias is added to.

    Both sums wrap modulo 2^32, so their order does not matter.
    """

    name: ClassVar[str] = "fuse-bias"
    roots: ClassVar[tuple[str, ...]] = ("arith.addi",)

    def check(self, op: ir.OpView) -> _Match | Refusal | None:
        lhs, rhs = op.operation.operands
        sides = ((lhs, rhs), (rhs, lhs))
        found = next(((producer(a), b) for a, b in sides if isinstance(producer(a), AnyContraction)), None)
        if found is None:
            return None
        contraction, addend = found
        assert isinstance(contraction, AnyContraction)
        shared = second_use(contraction.output)
        if shared:
            return Refusal(shared)
        bias = _bias_of(addend)
        if isinstance(bias, Refusal):
            return bias
        if contraction.bias is None:
            return _Match(contraction, bias)
        earlier = constant_value(contraction.bias)
        if earlier is None:
            return Refusal("needs the contraction's own bias to be constant")
        return _Match(contraction, earlier + bias)

    def rewrite(self, op: ir.OpView, match: _Match, rewriter: Rewriter) -> None:
        contraction = match.contraction
        with rewriter.before(op):
            bias = constant(match.bias)
            biased = rebuilt(contraction, contraction.data, contraction.weight, bias)
        rewriter.replace(op, biased.output)


def _bias_of(addend: ir.Value) -> NDArray[np.int32] | Refusal:
    value = constant_value(addend)
    if value is None:
        return Refusal("needs the value added to the contraction to be constant")
    channels = value.reshape(-1, value.shape[-1])
    if np.any(channels != channels[0]):
        return Refusal("needs the constant to depend on the last dimension alone")
    return channels[0]


@register
@dataclass(frozen=True)
class FuseBiasPass(PatternPass):
    """Fuse the addition of a constant per channel into the contraction that feeds it."""

    name: ClassVar[str] = "qnn-fuse-bias"

    def patterns(self) -> Sequence[Pattern[Any]]:
        return (FuseBias(),)
