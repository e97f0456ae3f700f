"""Makes tables of 256 entries: any function from 8-bit quantized values to 8-bit quantized values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from qdialect.arithmetic.choices import Entries, FloatRounding, Multiplier, NanPolicy, Rounding, Scaling
from qdialect.arithmetic.multipliers import (
    IntArray,
    doubling_high_multiply,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    real_multiplier,
    requantize_parameters,
    rounding_shift_right,
    saturating_shift_left,
)
from qdialect.arithmetic.quantization import FloatArray, QuantParams, quantize_array, quantized_range
from qdialect.arithmetic.requantization import reduced_multiplier, requantize

# Index and entry are unsigned bit patterns, so for int8 the order is 0..127, -128..-1; entries have the bits of the
# output type.  TVM and ONNX Runtime order their tables likewise; TOSA's run from -128 to 127.

Table = NDArray[np.uint8]
ElementFunction = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class QuantizedDtype(QuantParams):
    """Per-tensor parameters and the 8-bit type of the quantized values, at one end of a table."""

    dtype: DTypeLike

    def offsets(self) -> NDArray[np.int64]:
        """The 256 values less the zero point, in table order, int64[256]."""
        return table_values(self.dtype) - self.zero_point


def table_values(dtype: DTypeLike) -> NDArray[np.int64]:
    """The 256 values of an 8-bit type in table order, int64[256]."""
    return np.arange(256, dtype=np.uint8).view(dtype).astype(np.int64)


def build_table(
    function: ElementFunction, source: QuantizedDtype, result: QuantizedDtype, entries: Entries, nan: NanPolicy
) -> Table:
    """table[bits(i)] = bits(quantize(function(s_x * (i - z_x)))) for every value i of the type of `source`.

    Dequantization, `function` and quantization run in float32, except that `half_away_double` runs them in float64.
    Infinities saturate; NaN follows `nan`.
    """
    floating = np.float64 if entries is Entries.HALF_AWAY_DOUBLE else np.float32
    offsets = source.offsets().astype(floating)
    values: FloatArray = offsets * floating(source.scale)
    with np.errstate(all="ignore"):
        results = function(values).astype(floating)
    rounding = FloatRounding.HALF_EVEN if entries is Entries.HALF_EVEN_DIVIDE else FloatRounding.HALF_AWAY
    scaling = Scaling.RECIPROCAL_F32 if entries is Entries.HALF_AWAY_RECIPROCAL else Scaling.DIVIDE
    quantized = quantize_array(results, result.scale, result.zero_point, 0, result.dtype, rounding, scaling, nan)
    return quantized.view(np.uint8)


def encode_table(quantized: NDArray[np.int64], dtype: DTypeLike) -> Table:
    """Entries given as values of `dtype`, int64[256], as bit patterns."""
    return quantized.astype(dtype).view(np.uint8)


def identity_table() -> Table:
    """The table that changes no bit."""
    return np.arange(256, dtype=np.uint8)


def compose_tables(first: Table, second: Table) -> Table:
    """The table of `second` after `first`; the output type of the one must be the input type of the other."""
    return second[first]


def clamp_of_table(table: Table, input_dtype: DTypeLike, output_dtype: DTypeLike) -> tuple[int, int] | None:
    """(lo, hi) when the table maps every value v to min(max(v, lo), hi), else None."""
    outputs = table.view(output_dtype).astype(np.int64)
    lo, hi = int(outputs.min()), int(outputs.max())
    is_clamp = np.array_equal(outputs, np.clip(table_values(input_dtype), lo, hi))
    return (lo, hi) if is_clamp else None


# 3.0 in the scale where the piecewise-linear factor fills an int16.
_RELUISH_SCALE = np.float32(3) / np.float32(32768)


def _reluish(hires: IntArray, q: int, shift: int) -> IntArray:
    """(clamp(x / 3, -1, 1) + 1) / 2 in Q15, for a multiplier of 1 / 3 that is q * 2^-shift.

    A left shift saturates, and all but its last bit happens before the multiply so that no bit that matters is lost.
    """
    e = 15 - shift
    shifted = saturating_shift_left(hires, max(e - 1, 0), bits=16)
    scaled = doubling_high_multiply(shifted, q, bits=16)
    scaled = saturating_shift_left(scaled, 1 if e > 0 else 0, bits=16)
    scaled = rounding_shift_right(scaled, max(-e, 0))
    return (scaled + (1 << 15)) >> 1


def hard_swish_bound(input_scale: float) -> float:
    """float32(input scale) / 128, which float32(output scale) has to exceed, for the kernel only ever shifts right."""
    return float(np.float32(1 / 128) * np.float32(input_scale))


def tflite_hard_swish_table(source: QuantizedDtype, result: QuantizedDtype) -> Table:
    """TFLite HARD_SWISH (reference hard_swish.h), uint8[256] bit patterns, at most 2 from the real function.

    x * relu6(x + 3) / 6 = x * (clamp(x / 3, -1, 1) + 1) / 2.  The input offset times 128 fills 16 bits; one copy is
    multiplied to the output scale but for its right shift, another becomes the factor in [0, 1] as Q15.  Their doubling
    high product truncates towards zero, the pending right shift rounds ties away, and the zero point comes last.

    Raises:
        ValueError: the output scale does not exceed `hard_swish_bound`, which the kernel refuses.
    """
    lo, hi = quantized_range(result.dtype)
    hires_scale = np.float32(hard_swish_bound(source.scale))
    output_q, output_shift = reduced_multiplier(*quantize_multiplier(float(hires_scale / np.float32(result.scale))))
    reluish = reduced_multiplier(*quantize_multiplier(float(hires_scale / _RELUISH_SCALE)))
    if output_shift < 15:
        raise ValueError(f"output scale must be greater than {hires_scale}, but got {result.scale}")
    hires = source.offsets() << 7
    preshift = doubling_high_multiply(hires, output_q, bits=16)
    product = _reluish(hires, *reluish) * preshift
    truncated = np.sign(product) * (np.abs(product) >> 15)
    values = rounding_shift_right(truncated, output_shift - 15) + result.zero_point
    return encode_table(np.clip(values, lo, hi), result.dtype)


def tflite_leaky_relu_table(
    alpha: float, source: QuantizedDtype, result: QuantizedDtype, rounding: Rounding = Rounding.FIXED32_DOUBLE
) -> Table:
    """TFLite LEAKY_RELU: one fixed-point multiply per element, uint8[256] bit patterns.

    With d = x - z_x: y = d * (s_x / s_y) + z_y where d >= 0, d * (s_x * alpha / s_y) + z_y elsewhere; both multipliers
    are evaluated in float32 before they are quantized.  `rounding` is `fixed32_double`, or `fixed64_up` for builds with
    single rounding.

    Raises:
        ValueError: `alpha` is negative, or `rounding` is no fixed-point rounding mode.
    """
    lo, hi = quantized_range(result.dtype)
    offsets = source.offsets()
    identity = real_multiplier(source.scale, [1.0], result.scale, Multiplier.F32)
    slope = real_multiplier(source.scale, [alpha], result.scale, Multiplier.F32)
    positive = multiply_by_quantized_multiplier(offsets, *quantize_multiplier(float(identity[0])), rounding)
    negative = multiply_by_quantized_multiplier(offsets, *quantize_multiplier(float(slope[0])), rounding)
    values = np.where(offsets >= 0, positive, negative) + result.zero_point
    return encode_table(np.clip(values, lo, hi), result.dtype)


def tvm_leaky_relu_table(
    alpha: float, source: QuantizedDtype, result: QuantizedDtype, rounding: Rounding = Rounding.FIXED64_UP
) -> Table:
    """TVM qnn.leaky_relu: requantize first, then scale the quantized value, uint8[256] bit patterns.

    y = requantize(x) to the output parameters without a clamp.  Where x < z_x the result is y * alpha + z_y * (1 -
    alpha), each product rounded up at ties on its own; so up to three roundings meet, one of them of the zero point.

    Raises:
        ValueError: `alpha` is outside [0, 1].
    """
    lo, hi = quantized_range(result.dtype)
    values = table_values(source.dtype)
    params = requantize_parameters(rounding, real_multiplier(source.scale, [1.0], result.scale, Multiplier.F32_PRODUCT))
    wide = requantize(source.offsets(), params, result.zero_point, *quantized_range(np.int32), rounding)
    scaled = multiply_by_quantized_multiplier(wide, *quantize_multiplier(alpha), Rounding.FIXED64_UP)
    shift = multiply_by_quantized_multiplier(result.zero_point, *quantize_multiplier(1 - alpha), Rounding.FIXED64_UP)
    return encode_table(np.clip(np.where(values < source.zero_point, scaled + shift, wide), lo, hi), result.dtype)
