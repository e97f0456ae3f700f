"""Real functions of arrays, dtype in = dtype out (float32 or float64).

Transcendental functions of a float32 input are taken in float64 and rounded once, most of them by the algorithms of
`transcendental`: NumPy's own float32 versions differ between CPUs, and a table must not depend on the machine that
builds it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qdialect.arithmetic import transcendental
from qdialect.arithmetic.quantization import FloatArray
from qdialect.arithmetic.transcendental import NUMPY

ElementFunction = Callable[[FloatArray], FloatArray]


def _in_double(function: Callable[[FloatArray], FloatArray], x: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return function(x.astype(np.float64)).astype(x.dtype)


def tanh(x: FloatArray) -> FloatArray:
    """Hyperbolic tangent."""
    return _in_double(lambda v: transcendental.tanh(NUMPY, v), x)


def sin(x: FloatArray) -> FloatArray:
    """Sine; NaN of infinity."""
    return _in_double(lambda v: transcendental.sin(NUMPY, v), x)


def cos(x: FloatArray) -> FloatArray:
    """Cosine; NaN of infinity."""
    return _in_double(lambda v: transcendental.cos(NUMPY, v), x)


def erf(x: FloatArray) -> FloatArray:
    """Error function."""
    return _in_double(lambda v: transcendental.erf(NUMPY, v), x)


def erfc(x: FloatArray) -> FloatArray:
    """1 - erf(x), accurate where that is small too."""
    return _in_double(lambda v: transcendental.erfc(NUMPY, v), x)


def exp(x: FloatArray) -> FloatArray:
    """e^x; overflows to infinity."""
    return _in_double(lambda v: transcendental.exp(NUMPY, v), x)


def expm1(x: FloatArray) -> FloatArray:
    """e^x - 1; overflows to infinity."""
    return _in_double(lambda v: transcendental.expm1(NUMPY, v), x)


def log(x: FloatArray) -> FloatArray:
    """Natural logarithm; minus infinity at zero, NaN below."""
    return _in_double(lambda v: transcendental.log(NUMPY, v), x)


def log2(x: FloatArray) -> FloatArray:
    """Logarithm to base 2."""
    return _in_double(lambda v: transcendental.log2(NUMPY, v), x)


def log10(x: FloatArray) -> FloatArray:
    """Logarithm to base 10."""
    return _in_double(lambda v: transcendental.log10(NUMPY, v), x)


def log1p(x: FloatArray) -> FloatArray:
    """log(1 + x), accurate near zero too."""
    return _in_double(lambda v: transcendental.log1p(NUMPY, v), x)


def exp2(x: FloatArray) -> FloatArray:
    """2^x; overflows to infinity."""
    return _in_double(lambda v: transcendental.exp2(NUMPY, v), x)


def power(x: FloatArray, y: FloatArray) -> FloatArray:
    """x^y, with the special cases of C's pow."""
    return _in_double(lambda v: transcendental.power(NUMPY, v, y.astype(np.float64)), x)


def sqrt(x: FloatArray) -> FloatArray:
    """Square root; NaN below zero."""
    with np.errstate(invalid="ignore"):
        return np.sqrt(x)


def rsqrt(x: FloatArray) -> FloatArray:
    """1 / sqrt(x); infinity at zero, NaN below."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1 / np.sqrt(x)
