"""A scale as the arithmetic sees it: what f32 values are divided by or multiplied with, and when two are one.

A scale is a double wherever it is written down.  Runtimes narrow it to float32 at different moments, and the last bit
of the factor decides a tie: with s = 0.03, ``float32(1 / s)`` and ``1 / float32(s)`` differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdialect.quant_math.choices import Scaling

FloatArray = NDArray[np.floating[Any]]


def scale_factors(scales: ArrayLike, scaling: Scaling, like: type[np.float32 | np.float64] = np.float32) -> FloatArray:
    """What ``divide`` divides by and the other values of `scaling` multiply with, in the floating type `like`.

    * ``divide``: like(s) (ONNX QuantizeLinear, TFLite QUANTIZE).
    * ``reciprocal``: like(1 / s) with the division in float64 (PyTorch's ``quantized_decomposed`` ops).
    * ``reciprocal_f32``: 1 / like(s) in `like` (PyTorch's quantized tensors with FBGEMM, oneDNN, TFLite's tables).

    Factors beyond the range of `like` are infinite or zero, without a warning.
    """
    exact = np.asarray(scales, dtype=np.float64)
    with np.errstate(all="ignore"):
        if scaling is Scaling.RECIPROCAL:
            return (1 / exact).astype(like)
        narrow = exact.astype(like)
        return narrow if scaling is Scaling.DIVIDE else (like(1) / narrow).astype(like)


def same_scale(first: ArrayLike, second: ArrayLike) -> bool:
    """Whether two scales, or those of as many channels, are the same float32 numbers.

    Dequantization reads no more of a scale than that: quantized values at either scale stand for the same float32
    numbers.  Arithmetic that reads doubles has to compare them as doubles.
    """
    return np.array_equal(np.asarray(first, dtype=np.float32), np.asarray(second, dtype=np.float32))
