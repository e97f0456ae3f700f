"""HARD_SWISH in the 16-bit fixed-point arithmetic of TFLite's reference kernel, tabulated over all quantized values."""

from __future__ import annotations

import numpy as np

from qdialect.quant_math.affine import quantized_range
from qdialect.quant_math.fixed_point import (
    IntArray,
    doubling_high_multiply,
    rounding_shift_right,
    saturating_shift_left,
)
from qdialect.quant_math.multipliers import quantize_multiplier
from qdialect.quant_math.tables import QuantizedDtype, Table, encode_table

_INT16_MAX = 2**15 - 1
# 3.0 in the scale where the piecewise-linear factor fills an int16.
_RELUISH_SCALE = np.float32(3) / np.float32(32768)


def _quantize_to_int16(m: float) -> tuple[int, int]:
    """The multiplier m as (q, e) with a 15-bit q: the 31-bit one rounded, saturated at the top."""
    q, e = quantize_multiplier(m)
    return min((q + (1 << 15)) >> 16, _INT16_MAX), e


def _reluish(hires: IntArray, q: int, e: int) -> IntArray:
    """(clamp(x / 3, -1, 1) + 1) / 2 in Q15.

    A left shift saturates, and all but its last bit happens before the multiply so that no bit that matters is lost.
    """
    shifted = saturating_shift_left(hires, max(e - 1, 0), bits=16)
    scaled = doubling_high_multiply(shifted, q, bits=16)
    scaled = saturating_shift_left(scaled, 1 if e > 0 else 0, bits=16)
    scaled = rounding_shift_right(scaled, max(-e, 0))
    return (scaled + (1 << 15)) >> 1


def hard_swish_bound(input_scale: float) -> float:
    """What float32(output scale) has to exceed: float32(input scale) / 128, for the kernel only ever shifts right."""
    return float(np.float32(1 / 128) * np.float32(input_scale))


def tflite_hard_swish_table(
    source: QuantizedDtype,
    result: QuantizedDtype,
) -> Table:
    """TFLite HARD_SWISH (reference hard_swish.h), uint8[256] bit patterns, at most 2 from the real function.

    x * relu6(x + 3) / 6 = x * (clamp(x / 3, -1, 1) + 1) / 2.  The input offset times 128 fills 16 bits; one copy is
    multiplied to the output scale but for its right shift, another becomes the factor in [0, 1] as Q15.  Their doubling
    high product truncates towards zero, the pending right shift rounds ties away, and the zero point comes last.

    Raises:
        ValueError: the output scale does not exceed `hard_swish_bound`, which the kernel refuses.
    """
    lo, hi = quantized_range(result.dtype)
    hires_scale = np.float32(hard_swish_bound(source.scale))
    output_q, output_e = _quantize_to_int16(float(hires_scale / np.float32(result.scale)))
    reluish_q, reluish_e = _quantize_to_int16(float(hires_scale / _RELUISH_SCALE))
    if output_e > 0:
        raise ValueError(f"output scale must be greater than {hires_scale}, but got {result.scale}")
    hires = source.offsets() << 7
    preshift = doubling_high_multiply(hires, output_q, bits=16)
    product = _reluish(hires, reluish_q, reluish_e) * preshift
    truncated = np.sign(product) * (np.abs(product) >> 15)
    values = rounding_shift_right(truncated, -output_e) + result.zero_point
    return encode_table(np.clip(values, lo, hi), result.dtype)
