"""`qnn-sink-reshape`: a reshape between a contraction and what belongs to its epilogue moves below that."""

from __future__ import annotations

from typing import ClassVar

from qdialect.dialect import AnyContraction, AnyFused, ClipOp, LutOp, QnnOp, RequantizeOp, ReshapeOp, UnaryOp, build
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes import pattern
from qdialect.passes.canonicalize import MergeReshapes
from qdialect.passes.pattern import GraphPass, Replacement, produced_by, producer, refuse, require, second_use
from qdialect.passes.registry import register

_SUNK_THROUGH = (UnaryOp, ClipOp, LutOp, RequantizeOp)


class SinkReshape(Replacement[ReshapeOp]):
    """``f(reshape(contraction))`` becomes ``reshape(f(contraction))`` where f works element by element.

    A rescale by channel must find its channels where they were, in the last dimension.
    """

    roots = _SUNK_THROUGH

    def check(self, op: QnnOp) -> ReshapeOp | None:
        reshape = produced_by(op.operation.operands[0], ReshapeOp)
        if reshape is None or not _is_contracted(reshape.input):
            return None
        refuse(second_use(reshape.output))
        wanted = "must rescale the channels of the contraction, which the reshape moves to other dimensions"
        require(_keeps_channels(op, reshape), wanted)
        return reshape

    def emit(self, op: QnnOp, match: ReshapeOp) -> ir.Value:
        axis = len(shape_of(match.input.type)) - 1
        changes = {"axis": axis} if isinstance(op, RequantizeOp) else {}
        moved = pattern.rebuilt(op, match.input, element=element_of(op.operation.results[0].type), **changes)
        value = moved.operation.results[0]
        return build(ReshapeOp, value, element=element_of(value.type), shape=match.shape).output


def _is_contracted(value: ir.Value) -> bool:
    """Whether `value` comes from a contraction, through ops that a reshape sinks through."""
    op = producer(value)
    while isinstance(op, _SUNK_THROUGH):
        op = producer(op.operation.operands[0])
    return isinstance(op, AnyContraction | AnyFused)


def _keeps_channels(op: QnnOp, reshape: ReshapeOp) -> bool:
    """Whether the channels of a rescale are those of the contraction, or there is one."""
    if not isinstance(op, RequantizeOp) or len(op.weight_scales) == len(op.input_zero_points) == 1:
        return True
    before, after = shape_of(reshape.input.type), shape_of(reshape.output.type)
    return op.axis == len(after) - 1 and before[-1] == after[-1]


@register
class SinkReshapePass(GraphPass):
    """Move a reshape of a contraction's result below the requantization, clamp or table that belongs to it."""

    name: ClassVar[str] = "qnn-sink-reshape"
    rewrites = (MergeReshapes, SinkReshape)
