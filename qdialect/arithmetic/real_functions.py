"""Real functions of arrays, dtype in = dtype out (float32 or float64).

Transcendental functions of a float32 input are taken in float64 and rounded once, most of them by the algorithms of
`transcendental`: NumPy's own float32 versions differ between CPUs, and a table must not depend on the machine that
builds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from qdialect.arithmetic import transcendental
from qdialect.arithmetic.quantization import FloatArray
from qdialect.arithmetic.transcendental import NUMPY, Machine

ElementFunction = Callable[[FloatArray], FloatArray]


def _in_double(algorithm: Callable[[Machine[Any], Any], Any]) -> ElementFunction:
    def function(x: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return algorithm(NUMPY, x.astype(np.float64)).astype(x.dtype)

    return function


tanh = _in_double(transcendental.tanh)
"""Hyperbolic tangent."""
sin = _in_double(transcendental.sin)
"""Sine; NaN of infinity."""
cos = _in_double(transcendental.cos)
"""Cosine; NaN of infinity."""
erf = _in_double(transcendental.erf)
"""Error function."""
erfc = _in_double(transcendental.erfc)
"""1 - erf(x), accurate where that is small too."""
exp = _in_double(transcendental.exp)
"""e^x; overflows to infinity."""
expm1 = _in_double(transcendental.expm1)
"""e^x - 1; overflows to infinity."""
log = _in_double(transcendental.log)
"""Natural logarithm; minus infinity at zero, NaN below."""
log2 = _in_double(transcendental.log2)
"""Logarithm to base 2."""
log10 = _in_double(transcendental.log10)
"""Logarithm to base 10."""
log1p = _in_double(transcendental.log1p)
"""log(1 + x), accurate near zero too."""
exp2 = _in_double(transcendental.exp2)
"""2^x; overflows to infinity."""


def power(x: FloatArray, y: FloatArray) -> FloatArray:
    """x^y, with the special cases of C's pow."""
    with np.errstate(all="ignore"):
        return transcendental.power(NUMPY, x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)


def sqrt(x: FloatArray) -> FloatArray:
    """Square root; NaN below zero."""
    with np.errstate(invalid="ignore"):
        return np.sqrt(x)


def rsqrt(x: FloatArray) -> FloatArray:
    """1 / sqrt(x); infinity at zero, NaN below."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1 / np.sqrt(x)
