"""The machine of this package on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.float32.machine import ENTRIES, EXPONENT_BIAS, FRACTION_BITS
from qdialect.quant_math.numpy_arithmetic import NumpyArithmetic

F32Array = NDArray[np.float32]


def multiply_add(a: F32Array, b: F32Array, c: F32Array) -> F32Array:
    """a * b + c of float32 arrays that broadcast, rounded once, as the instruction of a CPU does.

    The product is exact in float64.  Its sum with c is rounded to odd there: where it is inexact, the last bit is set,
    from which rounding to float32 sees on which side of a tie the sum lies.  Twice 24 bits and 2 are enough for that
    (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
    """
    product = np.multiply(a, b, dtype=np.float64)
    addend = np.asarray(c, dtype=np.float64)
    total = np.asarray(product + addend)
    # What the sum has lost, exactly (Knuth's TwoSum).
    of_addend = total - product
    lost = (product - (total - of_addend)) + (addend - of_addend)
    bits = total.view(np.int64)
    is_inexact = np.isfinite(lost) & (lost != 0) & (bits & 1 == 0)
    # A bit towards what was lost: away from zero where the signs agree.
    towards = np.where((lost > 0) == (total > 0), 1, -1)
    return (bits + np.where(is_inexact, towards, 0)).view(np.float64).astype(np.float32)


class NumpyMachine(NumpyArithmetic):
    """Float32 arrays."""

    def constant(self, value: float) -> Any:
        """See `Machine`."""
        return np.float32(value)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """See `Machine`."""
        return multiply_add(a, b, c)

    def absolute(self, a: Any) -> Any:
        """See `Machine`."""
        return np.abs(a)

    def with_sign(self, size: Any, a: Any) -> Any:
        """See `Machine`."""
        return np.copysign(size, a)

    def power_of_two(self, biased: Any) -> Any:
        """See `Machine`."""
        return (_bits(biased) << FRACTION_BITS).view(np.float32)

    def scale(self, value: Any, biased: Any) -> Any:
        """See `Machine`."""
        bits = _bits(biased)
        half = bits >> 1
        first, second = half << FRACTION_BITS, (bits - half) << FRACTION_BITS
        return value * first.view(np.float32) * second.view(np.float32)

    def split(self, a: Any, minimum: float) -> tuple[Any, Any, Any]:
        """See `Machine`."""
        first = int(_bits(np.float32(minimum)))
        bits = _bits(a)
        exponent = (bits - first) >> FRACTION_BITS
        shifted = exponent << FRACTION_BITS
        power = ((EXPONENT_BIAS << FRACTION_BITS) - shifted).view(np.float32)
        return exponent.astype(np.float32), (bits - shifted).view(np.float32), power

    def entries(self, a: Any, shift: int, tables: Sequence[Sequence[float]]) -> list[Any]:
        """See `Machine`."""
        index = (_bits(a) >> shift) % ENTRIES
        return [np.array(table, dtype=np.float32)[index] for table in tables]


def _bits(a: Any) -> Any:
    return np.asarray(a, dtype=np.float32).view(np.int32)
