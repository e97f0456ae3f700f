"""Evaluators of the reductions over axes."""

from __future__ import annotations

from qdialect.dialect import ArgMaxOp, ArgMinOp
from qdialect.reference import reductions
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(ArgMaxOp)
def _arg_max(op: ArgMaxOp, operands: Arrays) -> Array:
    return reductions.arg_max(operands[0], op.axis, op.keep_dims, op.last)


@evaluates(ArgMinOp)
def _arg_min(op: ArgMinOp, operands: Arrays) -> Array:
    return reductions.arg_min(operands[0], op.axis, op.keep_dims, op.last)
