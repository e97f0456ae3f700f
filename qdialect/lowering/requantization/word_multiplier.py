"""Requantization whose sum and shift may be computed on packed words, 32 of them in a vector.

As `fixed_point_multiplier`, with numbers that have a sign, a slope q < 2^31 and s = 32 + r,

  g(x) = (((x + d) * q >> 32) + a) >> r,      b = d * q + a * 2^32,    r <= 7,    0 <= a < 2^15

For a clamp to 0..255 the upper half of the product, h, may be limited to 16 bits, and so may its sum with a: what is
limited at the top was 2^15 - 1 or more and stays there, and (2^15 - 1) >> r is 255 or more; what is limited at the
bottom becomes a - 2^15 < 0, as it was below.  So h is packed to words first, which are added and shifted.

Any b in the window will do.  For each a the least d that is large enough is d = ceil((minimum - a * 2^32) / q), and
some b is below the end for nearly one a in a hundred, since a window is about q / 128 wide.  Windows with a jump at
zero have no such form: it is 2^-n of a quantized value for multipliers of 2^-n, less than the 2^-r that a unit of h is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.operands.parameters import REST_OF_WORDS, SHIFT_OF_WORDS, Parameter
from qdialect.lowering.program import Kernel
from qdialect.lowering.requantization.fixed_point_multiplier import Windows, windows_of
from qdialect.lowering.text.emitters import EmitRequantize
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math import IntArray, Thresholds

_LARGEST = 2.0**62
_LONGEST_SHIFT = 7
_CHANGES = (0, 1, -1, 2, -2)
_FIRST_RESTS = (0, 64, 512, 4096, 32768)
_LARGEST_OFFSET = 2**30
_WORD = 2**32


@dataclass(frozen=True)
class WordMultiplier:
    """``(((acc + offset) * slope >> 32) + rest) >> shift`` by channel; its quantized values are not clamped."""

    offset: NDArray[np.int32]
    parameters: tuple[Parameter, ...]
    """Slope, rest and shift."""

    def declare(self, kernel: Kernel) -> EmitRequantize:
        """All it needs is read by channel."""
        return _emit


def _emit(body: Body, acc: Value, parameters: Sequence[Value]) -> Value:
    slope, rest, shift = parameters
    left, right = (body.cast("arith.extsi", value, "i64") for value in (acc, slope))
    upper = body.binary("arith.shrsi", body.multiply(left, right), body.constant(32, "i64"))
    high = body.cast("arith.trunci", upper, "i32")
    return body.binary("arith.shrsi", body.add(high, rest), shift)


def word_multiplier(steps: Thresholds, multipliers: NDArray[np.float64]) -> WordMultiplier | None:
    """The multipliers with the thresholds `steps`, near to `multipliers`, if every channel has one."""
    _, exponent = np.frexp(multipliers)
    shift = np.clip(-1 - exponent.astype(np.int64), 0, _LONGEST_SHIFT)
    nearest = np.rint(np.ldexp(np.minimum(multipliers, 1), 32 + shift.astype(np.int32))).astype(np.int64)
    reach = np.maximum(np.abs(steps.low), np.abs(steps.high)).astype(np.float64)
    if (multipliers >= 1 / 2).any() or (reach * nearest >= _LARGEST).any():
        return None
    offset, rest, slope = (np.zeros_like(nearest) for _ in range(3))
    left = np.arange(len(nearest))
    for change in _CHANGES:
        tried = np.clip(nearest[left] + change, 1, _WORD // 2 - 1)
        for found in _offsets(windows_of(steps.of(left), tried, shift[left])):
            own = left[found.where]
            offset[own], rest[own], slope[own] = found.offset, found.rest, tried[found.where]
        left = np.flatnonzero(slope == 0)
        if not len(left):
            arrays = {"slope": slope, REST_OF_WORDS: rest, SHIFT_OF_WORDS: shift}
            parameters = tuple(Parameter(name, "i32", values.astype(np.int32)) for name, values in arrays.items())
            return WordMultiplier(offset.astype(np.int32), parameters)
    return None


@dataclass(frozen=True)
class _Found:
    """Offset and rest of some channels."""

    where: NDArray[np.intp]
    offset: IntArray
    rest: IntArray


def _offsets(windows: Windows) -> Iterator[_Found]:
    """The first rest of each channel with which an offset leads into the window, some rests after the other."""
    minimum, end = windows.closed()
    left = np.flatnonzero(minimum < end)
    for first, behind in pairwise(_FIRST_RESTS):
        if not len(left):
            return
        some = windows.of(left)
        minimum, end = some.closed()
        rest = np.arange(first, behind, dtype=np.int64)[:, None]
        offset = -((rest * _WORD - minimum) // some.slope)
        fits = (offset * some.slope + rest * _WORD < end) & (np.abs(offset) < _LARGEST_OFFSET)
        fits &= (some.low + offset > -(2**31)) & (some.high + offset < 2**31)
        (own,) = np.nonzero(fits.any(axis=0))
        chosen = fits.argmax(axis=0)[own]
        yield _Found(left[own], offset[chosen, own], first + chosen)
        left = np.delete(left, own)
