"""The evaluator of tables with straight lines between their entries."""

from __future__ import annotations

import numpy as np

from qdialect.dialect import InterpolatedLutOp
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(InterpolatedLutOp)
def _interpolated_lut(op: InterpolatedLutOp, operands: Arrays) -> Array:
    bases, slopes = (np.array(numbers, dtype=np.int64) for numbers in (op.bases, op.slopes))
    x = np.clip(operands[0].astype(np.int64), 0, (len(bases) << op.fraction) - 1)
    index = x >> op.fraction
    # The interpreter's conversion to the result's type keeps the low bits.
    return (bases[index] << op.fraction) + (x - (index << op.fraction)) * slopes[index]
