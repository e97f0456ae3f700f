"""Which accumulators a contraction can have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.fixed_point import IntArray


def accumulator_range(
    weights: NDArray[np.integer[Any]], bias: NDArray[np.integer[Any]], offsets: tuple[int, int]
) -> tuple[IntArray, IntArray]:
    """The least and the largest ``bias[c] + sum_k x[k] * weights[c, k]`` for any x in `offsets`, int64[C] each.

    `weights` is [C, K], their zero points subtracted; `offsets` are the quantized values of the data less their zero
    point, so that 0, which stands for what a window leaves out at an edge, lies between them.
    """
    zero = weights.dtype.type(0)
    above, below = (limit(weights, zero).sum(axis=1, dtype=np.int64) for limit in (np.maximum, np.minimum))
    low, high = offsets
    start = bias.astype(np.int64)
    return start + low * above + high * below, start + high * above + low * below
