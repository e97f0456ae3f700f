"""`qnn-fuse-bias`: a constant that each channel's accumulators gain or lose becomes the contraction's bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import AnyContraction
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.elementwise.graph import per_channel_constant
from qdialect.passes.pattern import GraphPass, MatchFailure, Replacement, producer, rebuilt, refuse, require, second_use
from qdialect.passes.registry import register


@dataclass(frozen=True)
class _Match:
    contraction: AnyContraction
    bias: NDArray[np.int32]


class FuseBias(Replacement[_Match]):
    """``contraction + constant`` or ``contraction - constant`` where the constant depends on the channel alone.

    It may be broadcast; an earlier constant bias is added to.  All sums wrap modulo 2^32, so their order does not
    matter.
    """

    roots = ("arith.addi", "arith.subi")

    def check(self, op: ir.OpView) -> _Match | None:
        lhs, rhs = op.operation.operands
        sides = ((lhs, rhs), (rhs, lhs))
        found = next(((producer(a), b) for a, b in sides if isinstance(producer(a), AnyContraction)), None)
        if found is None:
            return None
        contraction, addend = found
        assert isinstance(contraction, AnyContraction)
        is_lost = op.operation.name == "arith.subi"
        require(not is_lost or addend == rhs, "must not subtract the accumulators, but subtract from them")
        refuse(second_use(contraction.output))
        bias = _bias_of(addend)
        bias = np.broadcast_to(np.negative(bias) if is_lost else bias, shape_of(contraction.output.type)[-1:])
        if contraction.bias is None:
            return _Match(contraction, bias)
        earlier = constant_value(contraction.bias)
        if earlier is None:
            raise MatchFailure("needs the contraction's own bias to be constant")
        return _Match(contraction, earlier + bias)

    def emit(self, op: ir.OpView, match: _Match) -> ir.Value:
        contraction = match.contraction
        bias = constant(match.bias)
        return rebuilt(contraction, contraction.data, contraction.weight, bias).output


def _bias_of(addend: ir.Value) -> NDArray[np.int32]:
    try:
        channels = per_channel_constant(addend)
    except ValueError as error:
        raise MatchFailure("needs the value added to the contraction to be constant") from error
    if channels is None:
        raise MatchFailure("needs the constant to depend on the last dimension alone")
    return channels[0]


@register
class FuseBiasPass(GraphPass):
    """Fuse the addition or subtraction of a constant per channel into the contraction that feeds it."""

    name: ClassVar[str] = "qnn-fuse-bias"
    rewrites = (FuseBias,)
