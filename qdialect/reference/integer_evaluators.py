"""Evaluators of the reductions of plain integers."""

from __future__ import annotations

import numpy as np

from qdialect.dialect import IntMaxOp, IntMinOp, IntProdOp, IntSumOp
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(IntSumOp)
def _sum(op: IntSumOp, operands: Arrays) -> Array:
    return np.add.reduce(operands[0], axis=op.axes, keepdims=op.keep_dims, dtype=operands[0].dtype)


@evaluates(IntProdOp)
def _product(op: IntProdOp, operands: Arrays) -> Array:
    return np.multiply.reduce(operands[0], axis=op.axes, keepdims=op.keep_dims, dtype=operands[0].dtype)


@evaluates(IntMaxOp)
def _max(op: IntMaxOp, operands: Arrays) -> Array:
    return operands[0].max(axis=op.axes, keepdims=op.keep_dims)


@evaluates(IntMinOp)
def _min(op: IntMinOp, operands: Arrays) -> Array:
    return operands[0].min(axis=op.axes, keepdims=op.keep_dims)
