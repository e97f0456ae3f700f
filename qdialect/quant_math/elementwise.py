"""Binary element-wise ops and concatenation: operands of different scales meet at the output's scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.quant_math.affine import quantized_range
from qdialect.quant_math.choices import AddArithmetic, Multiplier, Rounding, Scaling
from qdialect.quant_math.common_scale import scale_of_sum
from qdialect.quant_math.fixed_point import IntArray, multiply_by_quantized_multiplier
from qdialect.quant_math.float_sum import float_sum, float_sum_numbers
from qdialect.quant_math.multipliers import quantize_multiplier, real_multiplier, requantize_parameters, sum_factors
from qdialect.quant_math.quant_params import BinaryQuantization, QuantizedArray, QuantParams
from qdialect.quant_math.requantize import requantize, requantize_f32


def add(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
    arithmetic: AddArithmetic,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """lhs + rhs at the output's parameters, clamped to its bounds; shapes broadcast, the result is int64.

    `rounding` and `multiplier` govern the rescales of `requantize_each`; the other arithmetics fix theirs.
    """
    if arithmetic is AddArithmetic.FLOAT_ONCE:
        params = quantization.params
        numbers = float_sum_numbers([p.scale for p in params], [p.zero_point for p in params])
        total = float_sum(lhs, rhs, numbers)
    elif scaling := arithmetic.f32_scaling:
        total = _add_f32(lhs, rhs, quantization, scaling)
    else:
        total = signed_sum(lhs, rhs, quantization, 1, arithmetic, rounding, multiplier)
    return quantization.clip(total)


def signed_sum(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
    sign: int,
    arithmetic: AddArithmetic,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """lhs + sign * rhs at the output's parameters, not clamped, in an arithmetic that computes in integers."""
    if roundings := arithmetic.shifted_roundings:
        return _sum_shifted(lhs, rhs, quantization, sign, *roundings)
    if arithmetic is AddArithmetic.FIXED_ONCE:
        return _sum_fixed(lhs, rhs, quantization, sign)
    output = quantization.output
    left = rescale(lhs, quantization.lhs, output, rounding, multiplier)
    right = rescale(rhs, quantization.rhs, output, rounding, multiplier)
    # Both carry the output's zero point.
    return left - output.zero_point + sign * (right - output.zero_point) + output.zero_point


def _add_f32(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
    scaling: Scaling,
) -> IntArray:
    """half_even(((l - z_l) * s_l + (r - z_r) * s_r) / s_y) + z_y in float32, or times 1 / s_y."""
    left, right = quantization.f32_values(lhs, rhs)
    output, bounds = quantization.output, quantized_range(np.int32)
    return requantize_f32(left + right, output.scale, output.zero_point, *bounds, Rounding.F32_RNE_ZP_LAST, scaling)


def rescale(
    values: QuantizedArray, own: QuantParams, output: QuantParams, rounding: Rounding, multiplier: Multiplier
) -> IntArray:
    """`values` at the parameters `own` as values at `output`, clamped to int32 only; untouched where both are equal."""
    if own == output:
        return values.astype(np.int64)
    params = requantize_parameters(rounding, real_multiplier(own.scale, [1.0], output.scale, multiplier))
    offsets = values.astype(np.int64) - own.zero_point
    return requantize(offsets, params, output.zero_point, *quantized_range(np.int32), rounding)


def _sum_shifted(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
    sign: int,
    operand_rounding: Rounding,
    sum_rounding: Rounding,
) -> IntArray:
    """TFLite reference ADD and SUB: both operands at one scale with 20 more bits, then their sum rescaled."""
    scale = scale_of_sum(*quantization.params)
    left, right = scale.of_offsets(*quantization.offsets(lhs, rhs), operand_rounding)
    total = multiply_by_quantized_multiplier(left + sign * right, *quantize_multiplier(scale.output), sum_rounding)
    return total + quantization.output.zero_point


def _sum_fixed(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
    sign: int,
) -> IntArray:
    """floor(((l - z_l) * f_l + sign * (r - z_r) * f_r) * 2^-shift + 1/2) + z_y with the factors of `sum_factors`."""
    factors = sum_factors(*(own.scale for own in quantization.params))
    left, right = quantization.offsets(lhs, rhs)
    total = left * factors.lhs + right * (sign * factors.rhs) + (1 << (factors.shift - 1))
    return (total >> factors.shift) + quantization.output.zero_point


def mul(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """requantize((lhs - z_l) * (rhs - z_r)) with M = s_l * s_r / s_y, clamped; shapes broadcast, int64.

    TFLite evaluates M in float32 (`f32`), although it quantizes it to Q31 afterwards; TVM uses `f32_product`.
    """
    left, right = quantization.offsets(lhs, rhs)
    zero_point, bounds = quantization.output.zero_point, quantization.bounds
    f32 = real_multiplier(quantization.lhs.scale, [quantization.rhs.scale], quantization.output.scale, multiplier)
    return requantize(left * right, requantize_parameters(rounding, f32), zero_point, *bounds, rounding)


def concat(
    operands: Sequence[QuantizedArray],
    params: Sequence[QuantParams],
    axis: int,
    output: QuantParams,
    bounds: tuple[int, int],
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """Operands rescaled to the output's parameters where theirs differ, clamped to `bounds`, joined along `axis`."""
    pairs = zip(operands, params, strict=True)
    parts = [rescale(values, own, output, rounding, multiplier) for values, own in pairs]
    return np.clip(np.concatenate(parts, axis=axis), *bounds)
