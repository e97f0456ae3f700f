"""Measures the functions of `qdialect.arithmetic.float32` on every float32 number, as kernels compute them.

    .venv/bin/python tools/float_errors.py [NAME ...]

Prints the largest error of each function in units of the last place (of the float64 result's float32 neighbours, those
of subnormal numbers too), the number where it is, and how many numbers the NumPy reference computes otherwise, of every
64th block.  Exits with 1 where an error is above its limit or a bit differs.  One function takes some minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import qdialect
from qdialect.arithmetic import float32, transcendental
from qdialect.arithmetic.transcendental import NUMPY

_BLOCK = 1 << 20
_COMPARED = 64
"""Every so many blocks the reference computes one as well."""

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

TRUTHS: Mapping[str, Callable[[F64], F64]] = {
    "erf": lambda x: transcendental.erf(NUMPY, x),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
}


def errors(found: F32, truth: F64) -> F64:
    """How far `found` is from `truth`, in units of the last place of a float32 number of its size; 0 where both end.

    Infinity for what is infinite, NaN or negative on one side alone.
    """
    with np.errstate(all="ignore"):
        wanted = truth.astype(np.float32)
        exponent = np.maximum(np.frexp(truth)[1] - 1, -126)
        distance = np.abs(found.astype(np.float64) - truth) / np.ldexp(1.0, exponent - 23)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    ends = ~(np.isfinite(found) & np.isfinite(wanted))
    distance = np.where(ends, np.where(same, 0.0, np.inf), distance)
    is_turned = (np.signbit(found) != np.signbit(wanted)) & ~np.isnan(wanted)
    return np.where(is_turned, np.inf, distance)


def kernel(name: str) -> Callable[[F32], F32]:
    """The compiled function of a block of numbers."""
    type_ = f"tensor<{_BLOCK}xf32>"
    module = qdialect.parse(
        f"func.func @main(%x: {type_}) -> {type_} {{ %y = math.{name} %x : {type_} return %y : {type_} }}"
    )
    executable: Any = qdialect.compile(module)
    return executable


def measure(name: str) -> bool:
    """Print what was found of a function; whether all is well."""
    function, truth = kernel(name), TRUTHS[name]
    largest, where, differing = 0.0, 0.0, 0
    for block in range((1 << 32) // _BLOCK):
        bits = np.arange(block * _BLOCK, (block + 1) * _BLOCK, dtype=np.uint64).astype(np.uint32)
        x = bits.view(np.float32)
        found = function(x)
        with np.errstate(all="ignore"):
            distance = errors(found, truth(x.astype(np.float64)))
        index = int(np.argmax(distance))
        if distance[index] > largest:
            largest, where = float(distance[index]), float(x[index])
        if block % _COMPARED == 0:
            wanted = float32.evaluate(f"math.{name}", x)
            is_nan = np.isnan(found) & np.isnan(wanted)
            differing += int(((found.view(np.int32) != wanted.view(np.int32)) & ~is_nan).sum())
    print(f"{name}: {largest:.4f} at {where!r}, {differing} unlike the reference", flush=True)
    return largest <= 1 and not differing


def main(names: Sequence[str]) -> int:
    """Measure the functions with these names, all without any; the exit status."""
    found = [measure(name) for name in names or TRUTHS]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
