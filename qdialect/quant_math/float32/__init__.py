"""Transcendental functions of float32 values as fixed sequences of float32 operations and fused multiply-adds.

This is what a kernel computes where a float value is not known before run time.  One algorithm a file over an abstract
`Machine`: NumPy runs it here, the compiler writes it as vector code of any width, and both have the same bits.  The
polynomials are those that ``tools/float_coefficients.py`` derives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from qdialect.quant_math.float32.erf import erf
from qdialect.quant_math.float32.exp import exp
from qdialect.quant_math.float32.exp2 import exp2
from qdialect.quant_math.float32.expm1 import expm1, expm1_below_zero
from qdialect.quant_math.float32.log import log
from qdialect.quant_math.float32.log1p import log1p
from qdialect.quant_math.float32.machine import Machine
from qdialect.quant_math.float32.numpy_machine import F32Array, NumpyMachine
from qdialect.quant_math.float32.tanh import tanh

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

_MACHINE = NumpyMachine()


def evaluate(op: str, x: F32Array) -> F32Array:
    """The function of the op of a float32 array, with the bits that a kernel computes."""
    with np.errstate(all="ignore"):
        return np.asarray(ALGORITHMS[op](_MACHINE, np.asarray(x, dtype=np.float32)), dtype=np.float32)
