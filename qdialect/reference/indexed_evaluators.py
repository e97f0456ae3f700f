"""Evaluators of gathers and scatters by indices that are known at run time alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from qdialect.dialect import DynamicGatherOp, DynamicScatterOp
from qdialect.quant_math.choices import ScatterReduction
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(DynamicGatherOp)
def _gather(op: DynamicGatherOp, operands: Arrays) -> Array:
    data, indices = operands
    return np.take(data, _rows(indices, data.shape[op.axis]), axis=op.axis)


@evaluates(DynamicScatterOp)
def _scatter(op: DynamicScatterOp, operands: Arrays) -> Array:
    data, indices, updates = operands
    result, reduce = data.copy(), _REDUCTIONS[op.reduction]
    # One after another: of equal indices the last one stands.
    with np.errstate(all="ignore"):
        for row, update in zip(_rows(indices, len(data)), updates, strict=True):
            result[row] = reduce(result[row], update)
    return result


_REDUCTIONS: Mapping[ScatterReduction, Callable[[Array, Array], Array]] = {
    ScatterReduction.NONE: lambda _, update: update,
    ScatterReduction.ADD: np.add,
    ScatterReduction.MUL: np.multiply,
    ScatterReduction.MIN: np.minimum,
    ScatterReduction.MAX: np.maximum,
}


def _rows(indices: Array, extent: int) -> Array:
    """Negative indices counted from the end, those outside the nearest inside."""
    wide = indices.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + extent, wide), 0, extent - 1)
