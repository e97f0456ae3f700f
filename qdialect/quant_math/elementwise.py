"""Binary element-wise ops and concatenation: operands of different scales meet at the output's scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.quant_math.affine import code_range, dequantize_array
from qdialect.quant_math.choices import AddArithmetic, Multiplier, Rounding, Scaling
from qdialect.quant_math.fixed_point import IntArray, multiply_by_quantized_multiplier
from qdialect.quant_math.float_sum import float_sum, float_sum_numbers
from qdialect.quant_math.multipliers import quantize_multiplier, real_multiplier, requantize_parameters, sum_factors
from qdialect.quant_math.quant_params import QuantizedArray, QuantParams
from qdialect.quant_math.requantize import requantize, requantize_f32

# Bits by which TFLite shifts 8-bit operands of an addition up before rescaling them.
_ADD_LEFT_SHIFT = 20


def add(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    lhs_params: QuantParams,
    rhs_params: QuantParams,
    output: QuantParams,
    lo: int,
    hi: int,
    arithmetic: AddArithmetic,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """lhs + rhs at the output's parameters, clamped to [lo, hi]; shapes broadcast, the result is int64.

    `rounding` and `multiplier` govern the rescales of `requantize_each`; the other arithmetics fix theirs.
    """
    if roundings := arithmetic.shifted_roundings:
        total = _add_shifted(lhs, rhs, lhs_params, rhs_params, output, *roundings)
    elif arithmetic is AddArithmetic.FLOAT_ONCE:
        params = (lhs_params, rhs_params, output)
        numbers = float_sum_numbers([p.scale for p in params], [p.zero_point for p in params])
        total = float_sum(lhs, rhs, numbers)
    elif arithmetic is AddArithmetic.FIXED_ONCE:
        total = add_fixed(lhs, rhs, lhs_params, rhs_params, output)
    elif scaling := arithmetic.f32_scaling:
        total = _add_f32(lhs, rhs, lhs_params, rhs_params, output, scaling)
    else:
        left = rescale(lhs, lhs_params, output, rounding, multiplier)
        total = left + rescale(rhs, rhs_params, output, rounding, multiplier) - output.zero_point
    return np.clip(total, lo, hi)


def _add_f32(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    lhs_params: QuantParams,
    rhs_params: QuantParams,
    output: QuantParams,
    scaling: Scaling,
) -> IntArray:
    """half_even(((l - z_l) * s_l + (r - z_r) * s_r) / s_y) + z_y in float32, or times 1 / s_y."""
    left, right = (
        dequantize_array(values, own.scale, own.zero_point, 0) for values, own in ((lhs, lhs_params), (rhs, rhs_params))
    )
    bounds = code_range(np.int32)
    return requantize_f32(left + right, output.scale, output.zero_point, *bounds, Rounding.F32_RNE_ZP_LAST, scaling)


def rescale(
    values: QuantizedArray, own: QuantParams, output: QuantParams, rounding: Rounding, multiplier: Multiplier
) -> IntArray:
    """`values` at the parameters `own` as values at `output`, clamped to int32 only; untouched where both are equal."""
    if own == output:
        return values.astype(np.int64)
    params = requantize_parameters(rounding, real_multiplier(own.scale, [1.0], output.scale, multiplier))
    offsets = values.astype(np.int64) - own.zero_point
    return requantize(offsets, params, output.zero_point, *code_range(np.int32), rounding)


@dataclass(frozen=True)
class ShiftedOperands:
    """Operands at one scale with 20 more bits, and the (q, e) that takes their sum or difference to the output's."""

    lhs: IntArray
    rhs: IntArray
    multiplier: tuple[int, int]


def shifted_operands(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    lhs_params: QuantParams,
    rhs_params: QuantParams,
    output: QuantParams,
    rounding: Rounding = Rounding.FIXED32_DOUBLE,
) -> ShiftedOperands:
    """TFLite reference ADD and SUB.  With t = 2 * max(s_l, s_r), operands become round((x - z) * 2^20 * s / t).

    The factor two keeps both multipliers at one half or less, so the sum stays within int32; it is then multiplied by
    t / (2^20 * s_y).  Multipliers are formed in float64.  TOSA rescales x - z by 2^20 * s / t at once: the same number,
    for with one rounding 2^20 cancels.
    """
    left, right, twice_max = at_common_scale(lhs, rhs, lhs_params, rhs_params, _ADD_LEFT_SHIFT, rounding)
    return ShiftedOperands(left, right, quantize_multiplier(twice_max / ((1 << _ADD_LEFT_SHIFT) * output.scale)))


def at_common_scale(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    lhs_params: QuantParams,
    rhs_params: QuantParams,
    shift: int,
    rounding: Rounding,
) -> tuple[IntArray, IntArray, float]:
    """With t = 2 * max(s_l, s_r), the operands as round((x - z) * 2^shift * s / t), and t; multipliers in float64."""
    twice_max = 2 * max(lhs_params.scale, rhs_params.scale)
    left, right = (
        multiply_by_quantized_multiplier(
            (values.astype(np.int64) - own.zero_point) << shift,
            *quantize_multiplier(own.scale / twice_max),
            rounding,
        )
        for values, own in ((lhs, lhs_params), (rhs, rhs_params))
    )
    return left, right, twice_max


def _add_shifted(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    lhs_params: QuantParams,
    rhs_params: QuantParams,
    output: QuantParams,
    operand_rounding: Rounding,
    sum_rounding: Rounding,
) -> IntArray:
    operands = shifted_operands(lhs, rhs, lhs_params, rhs_params, output, operand_rounding)
    total = operands.lhs + operands.rhs
    return multiply_by_quantized_multiplier(total, *operands.multiplier, sum_rounding) + output.zero_point


def add_fixed(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    lhs_params: QuantParams,
    rhs_params: QuantParams,
    output: QuantParams,
    sign: int = 1,
) -> IntArray:
    """floor(((l - z_l) * f_l + sign * (r - z_r) * f_r) * 2^-shift + 1/2) + z_y with the factors of `sum_factors`."""
    factors = sum_factors(lhs_params.scale, rhs_params.scale, output.scale)
    left = (lhs.astype(np.int64) - lhs_params.zero_point) * factors.lhs
    right = (rhs.astype(np.int64) - rhs_params.zero_point) * (sign * factors.rhs)
    return ((left + right + (1 << (factors.shift - 1))) >> factors.shift) + output.zero_point


def mul(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    lhs_params: QuantParams,
    rhs_params: QuantParams,
    output: QuantParams,
    lo: int,
    hi: int,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """requantize((lhs - z_l) * (rhs - z_r)) with M = s_l * s_r / s_y, clamped to [lo, hi]; shapes broadcast, int64.

    TFLite evaluates M in float32 (`f32`), although it quantizes it to Q31 afterwards; TVM uses `f32_product`.
    """
    product = (lhs.astype(np.int64) - lhs_params.zero_point) * (rhs.astype(np.int64) - rhs_params.zero_point)
    f32 = real_multiplier(lhs_params.scale, [rhs_params.scale], output.scale, multiplier)
    return requantize(product, requantize_parameters(rounding, f32), output.zero_point, lo, hi, rounding)


def concat(
    operands: Sequence[QuantizedArray],
    params: Sequence[QuantParams],
    axis: int,
    output: QuantParams,
    lo: int,
    hi: int,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """Operands rescaled to the output's parameters where theirs differ, clamped to [lo, hi], joined along `axis`."""
    pairs = zip(operands, params, strict=True)
    parts = [rescale(values, own, output, rounding, multiplier) for values, own in pairs]
    return np.clip(np.concatenate(parts, axis=axis), lo, hi)
