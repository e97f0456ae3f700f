"""Evaluators of running sums and ranks."""

from __future__ import annotations

import numpy as np

from qdialect.dialect import CumSumOp, RankOp
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


@evaluates(RankOp)
def _rank(op: RankOp, operands: Arrays) -> Array:
    def ranks(rows: Array) -> Array:
        # The complement turns the order around and, unlike the negative, overflows nowhere.
        order = np.argsort(~rows, axis=-1, kind="stable")
        result = np.empty(rows.shape, np.int64)
        np.put_along_axis(result, order, np.broadcast_to(np.arange(rows.shape[-1]), rows.shape), axis=-1)
        return result

    return last_axis(operands[0], op.axis, ranks)
