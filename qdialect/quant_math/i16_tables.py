"""Functions of 16-bit quantized values as tables with straight lines between their entries (TFLite's kernels)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.affine import FloatArray
from qdialect.quant_math.fixed_point import IntArray

_SEGMENTS = 512
_LOW, _HIGH = -(2**15), 2**15 - 1

Function = Callable[[FloatArray], FloatArray]
"""Of floats; the dtype of the result is that of its argument."""


@dataclass(frozen=True)
class Lines:
    """``(bases[i] << fraction) + r * slopes[i]`` for an integer ``(i << fraction) + r``; both int64[entries]."""

    bases: IntArray
    slopes: IntArray
    fraction: int


def table_of(
    function: Function, input_scale: float, output_scale: float, input_zero_point: int, dtype: type[np.floating]
) -> IntArray:
    """The 513 entries of a function of int16 values, evaluated in `dtype`; the result's zero point is 0.

    Half of the error in the middle of each segment is taken off the entry it starts at (TFLite LUTPopulateInt16).
    """
    number = dtype
    low = number(input_scale) * number(_LOW - input_zero_point)
    high = number(input_scale) * number(_HIGH - input_zero_point)
    ends = number(output_scale) * number(_LOW), number(output_scale) * number(_HIGH)
    step = (high - low) / number(_SEGMENTS)
    steps_per_unit = number(2**16) / (ends[1] - ends[0])
    starts = low + np.arange(_SEGMENTS).astype(dtype) * step
    nexts = low + np.arange(1, _SEGMENTS + 1).astype(dtype) * step
    with np.errstate(all="ignore"):
        samples = _half_away(function(starts) * steps_per_unit)
        between = _half_away((function(nexts) * steps_per_unit + samples) / number(2))
        middles = _half_away(function(starts + step / number(2)) * steps_per_unit)
        entries = samples - _half_away((between - middles) / number(2))
        last = _half_away(function(np.array([high], dtype)) * steps_per_unit)
        found = np.clip(np.concatenate([entries, last]), _LOW, _HIGH)
    return np.where(np.isnan(found), 0, found).astype(np.int64)


def _half_away(x: FloatArray) -> FloatArray:
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(x.dtype.type(1), x), x.dtype.type(0))


def lines_of(entries: IntArray) -> Lines:
    """The lines between 513 entries, seven bits long; a slope wraps to 16 bits (TFLite LUTLookup)."""
    slopes: NDArray[np.int16] = np.diff(entries).astype(np.int16)
    return Lines(entries[:-1], slopes.astype(np.int64), 7)


def sigmoid_lines(fraction: int, end: int) -> Lines:
    """65536 / (1 + e^-x) at multiples of 1/24, 256 entries; the last line is flat at `end`.

    An entry is raised by half of what the line after it misses in its middle (TFLite's sigmoid_table_uint16).
    """
    x = np.arange(257) / 24
    values = 2.0**16 / (1 + np.exp(-x))
    middles = 2.0**16 / (1 + np.exp(-(x[:-1] + 1 / 48)))
    entries = np.floor(values[:-1] - ((values[:-1] + values[1:]) / 2 - middles) / 2 + 0.5).astype(np.int64)
    entries[-1] = 2**16 - 1
    slopes = np.append(np.diff(entries), 0)
    entries[-1] = end
    return Lines(entries, slopes, fraction)
