"""Transcendental functions of float32 values as fixed sequences of float32 operations and fused multiply-adds.

This is what a kernel computes where a float value is not known before run time.  One algorithm a file over an abstract
`Machine`: NumPy runs it here, the compiler writes it as vector code of any width, and both have the same bits.  The
polynomials are those that ``tools/float_coefficients.py`` derives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from qdialect.arithmetic.float32.functions import erf, exp, exp2, expm1, expm1_below_zero, log, log1p, tanh
from qdialect.arithmetic.float32.machine import NUMPY, Machine
from qdialect.arithmetic.machine import F32Array

Algorithm = Callable[[Machine[Any], Any], Any]

ALGORITHMS: Mapping[str, Algorithm] = {
    "math.erf": erf,
    "math.exp": exp,
    "math.exp2": exp2,
    "math.expm1": expm1,
    "math.log": log,
    "math.log1p": log1p,
    "math.tanh": tanh,
}
"""By the name of the op whose float32 meaning it is."""
BELOW_ZERO: Mapping[str, Algorithm] = {"math.expm1": expm1_below_zero}
"""The same with less work, for where only the results of x <= 0 and of NaN count."""


def evaluate(op: str, x: F32Array) -> F32Array:
    """The function of the op of a float32 array, with the bits that a kernel computes."""
    with np.errstate(all="ignore"):
        return np.asarray(ALGORITHMS[op](NUMPY, np.asarray(x, dtype=np.float32)), dtype=np.float32)
