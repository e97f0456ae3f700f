"""Evaluators of running sums and of the largest elements."""

from __future__ import annotations

import numpy as np

from qdialect.dialect import CumSumOp, TopKOp
from qdialect.reference.evaluators import Array, Arrays, evaluates, last_axis


@evaluates(CumSumOp)
def _cumsum(op: CumSumOp, operands: Arrays) -> Array:
    def sums(rows: Array) -> Array:
        rows = rows[..., ::-1] if op.reverse else rows
        with np.errstate(all="ignore"):
            total: Array = np.add.accumulate(rows, axis=-1, dtype=rows.dtype)
        if op.exclusive:
            total = np.concatenate([np.zeros_like(total[..., :1]), total[..., :-1]], axis=-1)
        return total[..., ::-1] if op.reverse else total

    return last_axis(operands[0], op.axis, sums)


@evaluates(TopKOp)
def _top_k(op: TopKOp, operands: Arrays) -> Array:
    # The complement turns the order around and, unlike the negative, overflows nowhere.
    return last_axis(operands[0], op.axis, lambda rows: np.argsort(~rows, axis=-1, kind="stable")[..., : op.count])
