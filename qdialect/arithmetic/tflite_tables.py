"""Makes the tables of TFLite's kernels: unary operators of 8 bits, and of 16 bits straight lines between entries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from qdialect.arithmetic import activations, multipliers
from qdialect.arithmetic.choices import Entries, FloatRounding, Multiplier, NanPolicy, Rounding
from qdialect.arithmetic.fixed_point_functions import inverse_roots
from qdialect.arithmetic.quantization import FloatArray, quantized_range, round_f32, same_scale
from qdialect.arithmetic.tables import QuantizedDtype, Table, build_table, encode_table, table_values

# Every function takes the parameters and dtype of its input and of its result, and returns uint8[256] bit patterns.

# RSQRT keeps its roots as integers with so many more bits.
_ROOT_PLACES = 20


def tflite_abs_table(source: QuantizedDtype, result: QuantizedDtype) -> Table:
    """TFLite ABS: |x - z_x| times s_x / s_y, rounded twice; untouched where the scales are equal."""
    magnitudes = np.abs(source.offsets())
    if not same_scale(source.scale, result.scale):
        f32 = multipliers.real_multiplier(source.scale, [1.0], result.scale, Multiplier.F32)
        multiplier = multipliers.quantize_multiplier(float(f32[0]))
        magnitudes = multipliers.multiply_by_quantized_multiplier(magnitudes, *multiplier, Rounding.FIXED32_DOUBLE)
    return _encoded(magnitudes + result.zero_point, result.dtype)


def tflite_sqrt_table(source: QuantizedDtype, result: QuantizedDtype) -> Table:
    """TFLite SQRT: the float32 root divided by the output scale and truncated.

    The kernel fails for a negative number; here its root is zero.
    """
    f32_values = np.maximum(source.offsets(), 0).astype(np.float32) * np.float32(source.scale)
    return _encoded(np.trunc(np.sqrt(f32_values) / np.float32(result.scale)) + result.zero_point, result.dtype)


def tflite_rsqrt_table(source: QuantizedDtype, result: QuantizedDtype) -> Table:
    """TFLite RSQRT: the fixed-point inverse root of x - z_x times 1 / (sqrt(s_x) * s_y), both rounded twice.

    Zero gives the largest quantized value.  The kernel fails for a negative number, which is taken for zero here.
    """
    offsets = source.offsets()
    product = float(np.float32(np.sqrt(np.float32(source.scale)) * np.float32(result.scale)))
    q, e = multipliers.quantize_multiplier(1 / product)
    mantissas, shifts = inverse_roots(np.maximum(offsets, 1))
    roots = multipliers.multiply_by_quantized_multiplier(1, mantissas, _ROOT_PLACES - shifts, Rounding.FIXED32_DOUBLE)
    scaled = multipliers.multiply_by_quantized_multiplier(roots, q, e - _ROOT_PLACES, Rounding.FIXED32_DOUBLE)
    largest = quantized_range(result.dtype)[1]
    return _encoded(np.where(offsets > 0, scaled + result.zero_point, largest), result.dtype)


def tflite_negate_table(dtype: DTypeLike) -> Table:
    """TFLite NEG: the quantized value itself is negated, except for the smallest one, which does not change."""
    return encode_table(-table_values(dtype), dtype)


def tflite_gelu_table(is_approximate: bool, source: QuantizedDtype, result: QuantizedDtype) -> Table:
    """TFLite GELU: x / 2 * erfc(-x / sqrt 2) in float32, or x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))."""
    function = activations.tflite_gelu_tanh if is_approximate else _gelu
    return build_table(function, source, result, Entries.HALF_AWAY_RECIPROCAL, NanPolicy.MIN)


def _gelu(x: FloatArray) -> FloatArray:
    complement = [math.erfc(float(v)) for v in x * np.float32(-math.sqrt(0.5))]
    return np.float32(0.5) * x * np.array(complement, dtype=np.float32)


def _encoded(values: multipliers.IntArray | FloatArray, dtype: DTypeLike) -> Table:
    return encode_table(np.clip(values, *quantized_range(dtype)).astype(np.int64), dtype)


_SEGMENTS = 512
_LOW, _HIGH = -(2**15), 2**15 - 1

Function = Callable[[FloatArray], FloatArray]
"""Of floats; the dtype of the result is that of its argument."""


@dataclass(frozen=True)
class Lines:
    """``(bases[i] << fraction) + r * slopes[i]`` for an integer ``(i << fraction) + r``; both int64[entries]."""

    bases: multipliers.IntArray
    slopes: multipliers.IntArray
    fraction: int


def table_of(
    function: Function, input_scale: float, output_scale: float, input_zero_point: int, dtype: type[np.floating]
) -> multipliers.IntArray:
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

    def half_away(x: FloatArray) -> FloatArray:
        return round_f32(x, FloatRounding.HALF_AWAY)

    with np.errstate(all="ignore"):
        samples = half_away(function(starts) * steps_per_unit)
        between = half_away((function(nexts) * steps_per_unit + samples) / number(2))
        middles = half_away(function(starts + step / number(2)) * steps_per_unit)
        entries = samples - half_away((between - middles) / number(2))
        last = half_away(function(np.array([high], dtype)) * steps_per_unit)
        found = np.clip(np.concatenate([entries, last]), _LOW, _HIGH)
    return np.where(np.isnan(found), 0, found).astype(np.int64)


def lines_of(entries: multipliers.IntArray) -> Lines:
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
