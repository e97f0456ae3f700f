"""The machine of this package on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.float32.machine import ENTRIES, EXPONENT_BIAS, FRACTION_BITS, at_least
from qdialect.quant_math.numpy_arithmetic import NumpyArithmetic

F32Array = NDArray[np.float32]
F64Array = NDArray[np.float64]

# The bits of a float64 number that a float32 number lacks, and those of a number halfway between two float32 numbers.
_LOST_BITS = np.int64(2**29 - 1)
_HALF = np.int64(2**28)
_SMALLEST_NORMAL = 2.0**-126


def multiply_add(a: F32Array, b: F32Array, c: F32Array) -> F32Array:
    """a * b + c of float32 arrays that broadcast, rounded once, as the instruction of a CPU does.

    The product is exact in float64.  Where its sum with c is rounded there to a tie of float32 numbers, on whose side
    the exact sum lies is no longer seen, and only there the sum is rounded to odd instead.
    """
    product = np.multiply(a, b, dtype=np.float64)
    addend = np.asarray(c, dtype=np.float64)
    total = np.asarray(product + addend)
    is_tie = _may_be_tie(total)
    if is_tie.any():
        factors, addends = (np.broadcast_to(part, total.shape)[is_tie] for part in (product, addend))
        total[is_tie] = _sum_to_odd(factors, addends)
    return total.astype(np.float32)


def _may_be_tie(total: F64Array) -> NDArray[np.bool_]:
    """Whether a number lies halfway between two float32 numbers, or is below those that have all of their bits."""
    is_half = (total.view(np.int64) & _LOST_BITS) == _HALF
    is_small = np.abs(total) < _SMALLEST_NORMAL
    return is_half | (is_small & (total != 0)) if is_small.any() else is_half


def _sum_to_odd(product: F64Array, addend: F64Array) -> F64Array:
    """The sum, rounded to odd: where it is inexact, the last bit is set.

    From that bit rounding to float32 sees on which side of a tie the sum lies.  Twice 24 bits and 2 are enough for that
    (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
    """
    total = product + addend
    # What the sum has lost, exactly (Knuth's TwoSum).
    of_addend = total - product
    lost = (product - (total - of_addend)) + (addend - of_addend)
    bits = total.view(np.int64)
    is_inexact = np.isfinite(lost) & (lost != 0) & (bits & 1 == 0)
    # A bit towards what was lost: away from zero where the signs agree.
    towards = np.where((lost > 0) == (total > 0), 1, -1)
    return (bits + np.where(is_inexact, towards, 0)).view(np.float64)


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

    def at_least_scaled(self, x: Any, bound: float) -> Any:
        """See `Machine`."""
        return at_least(self, x, bound)

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
