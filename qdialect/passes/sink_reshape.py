"""`qnn-sink-reshape`: a reshape between a contraction and what belongs to its epilogue moves below that."""

from __future__ import annotations

from typing import ClassVar

from qdialect.dialect import AnyContraction, AnyFused, ClipOp, LutOp, QnnOp, RequantizeOp, ReshapeOp, UnaryOp, build
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.canonicalize import MergeReshapes
from qdialect.passes.pattern import GraphPass, MatchFailure, Replacement, produced_by, producer, rebuilt, second_use
from qdialect.passes.registry import register

_SUNK_THROUGH = (UnaryOp, ClipOp, LutOp, RequantizeOp)


class SinkReshape(Replacement[ReshapeOp]):
    """``f(reshape(contraction))`` becomes ``reshape(f(contraction))`` where f works element by element.

    A rescale by channel must find its channels where they were, in the last dimension.
    """

    roots = _SUNK_THROUGH

    def check(self, op: QnnOp) -> ReshapeOp | MatchFailure | None:
        reshape = produced_by(op.operation.operands[0], ReshapeOp)
        if reshape is None or not _is_contracted(reshape.input):
            return None
        reason = second_use(reshape.output) or _channel_obstacle(op, reshape)
        return MatchFailure(reason) if reason else reshape

    def emit(self, op: QnnOp, match: ReshapeOp) -> ir.Value:
        axis = len(shape_of(match.input.type)) - 1
        changes = {"axis": axis} if isinstance(op, RequantizeOp) else {}
        moved = rebuilt(op, match.input, element=element_of(op.operation.results[0].type), **changes)
        value = moved.operation.results[0]
        return build(ReshapeOp, value, element=element_of(value.type), shape=match.shape).output


def _is_contracted(value: ir.Value) -> bool:
    """Whether `value` comes from a contraction, through ops that a reshape sinks through."""
    op = producer(value)
    while isinstance(op, _SUNK_THROUGH):
        op = producer(op.operation.operands[0])
    return isinstance(op, AnyContraction | AnyFused)


def _channel_obstacle(op: QnnOp, reshape: ReshapeOp) -> str | None:
    """Why the channels of a rescale are not those of the contraction; None where they are, or where there is one."""
    if not isinstance(op, RequantizeOp) or len(op.weight_scales) == len(op.input_zero_points) == 1:
        return None
    before, after = shape_of(reshape.input.type), shape_of(reshape.output.type)
    if op.axis == len(after) - 1 and before[-1] == after[-1]:
        return None
    return "must rescale the channels of the contraction, which the reshape moves to other dimensions"


@register
class SinkReshapePass(GraphPass):
    """Move a reshape of a contraction's result below the requantization, clamp or table that belongs to it."""

    name: ClassVar[str] = "qnn-sink-reshape"
    rewrites = (MergeReshapes, SinkReshape)
