"""Unary operators of .tflite models in the arithmetic of the reference kernels, tabulated over all quantized values.

Every function takes the parameters and dtype of its input and of its result, and returns uint8[256] bit patterns.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike

from qdialect.quant_math import activations
from qdialect.quant_math.affine import FloatArray, quantized_range
from qdialect.quant_math.choices import Entries, Multiplier, NanPolicy, Rounding
from qdialect.quant_math.fixed_point import IntArray, multiply_by_quantized_multiplier
from qdialect.quant_math.inverse_root import inverse_root
from qdialect.quant_math.multipliers import quantize_multiplier, real_multiplier
from qdialect.quant_math.scales import same_scale
from qdialect.quant_math.tables import QuantizedDtype, Table, build_table, encode_table, table_values

# RSQRT keeps its roots as integers with so many more bits.
_ROOT_PLACES = 20


def tflite_abs_table(
    source: QuantizedDtype,
    result: QuantizedDtype,
) -> Table:
    """TFLite ABS: |x - z_x| times s_x / s_y, rounded twice; untouched where the scales are equal."""
    magnitudes = np.abs(source.offsets())
    if not same_scale(source.scale, result.scale):
        f32 = real_multiplier(source.scale, [1.0], result.scale, Multiplier.F32)
        multiplier = quantize_multiplier(float(f32[0]))
        magnitudes = multiply_by_quantized_multiplier(magnitudes, *multiplier, Rounding.FIXED32_DOUBLE)
    return _encoded(magnitudes + result.zero_point, result.dtype)


def tflite_sqrt_table(
    source: QuantizedDtype,
    result: QuantizedDtype,
) -> Table:
    """TFLite SQRT: the float32 root divided by the output scale and truncated.

    The kernel fails for a negative number; here its root is zero.
    """
    f32_values = np.maximum(source.offsets(), 0).astype(np.float32) * np.float32(source.scale)
    return _encoded(np.trunc(np.sqrt(f32_values) / np.float32(result.scale)) + result.zero_point, result.dtype)


def tflite_rsqrt_table(
    source: QuantizedDtype,
    result: QuantizedDtype,
) -> Table:
    """TFLite RSQRT: the fixed-point inverse root of x - z_x times 1 / (sqrt(s_x) * s_y), both rounded twice.

    Zero gives the largest quantized value.  The kernel fails for a negative number, which is taken for zero here.
    """
    offsets = source.offsets()
    product = float(np.float32(np.sqrt(np.float32(source.scale)) * np.float32(result.scale)))
    q, e = quantize_multiplier(1 / product)
    roots = np.array([_root(int(offset)) for offset in np.maximum(offsets, 1)])
    scaled = multiply_by_quantized_multiplier(roots, q, e - _ROOT_PLACES, Rounding.FIXED32_DOUBLE)
    largest = quantized_range(result.dtype)[1]
    return _encoded(np.where(offsets > 0, scaled + result.zero_point, largest), result.dtype)


def _root(value: int) -> int:
    q, shift = inverse_root(value)
    return int(multiply_by_quantized_multiplier(1, q, _ROOT_PLACES - shift, Rounding.FIXED32_DOUBLE))


def tflite_negate_table(dtype: DTypeLike) -> Table:
    """TFLite NEG: the quantized value itself is negated, except for the smallest one, which does not change."""
    return encode_table(-table_values(dtype), dtype)


def tflite_gelu_table(
    is_approximate: bool,
    source: QuantizedDtype,
    result: QuantizedDtype,
) -> Table:
    """TFLite GELU: x / 2 * erfc(-x / sqrt 2) in float32, or x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))."""
    function = activations.tflite_gelu_tanh if is_approximate else _gelu
    return build_table(function, source, result, Entries.HALF_AWAY_RECIPROCAL, NanPolicy.MIN)


def _gelu(x: FloatArray) -> FloatArray:
    complement = [math.erfc(float(v)) for v in x * np.float32(-math.sqrt(0.5))]
    return np.float32(0.5) * x * np.array(complement, dtype=np.float32)


def _encoded(values: IntArray | FloatArray, dtype: DTypeLike) -> Table:
    return encode_table(np.clip(values, *quantized_range(dtype)).astype(np.int64), dtype)
