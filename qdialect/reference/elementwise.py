"""Binary element-wise ops and concatenation: operands of different scales meet at the output's scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math import (
    AddArithmetic,
    IntArray,
    Multiplier,
    Rounding,
    Scaling,
    code_range,
    dequantize_array,
    float_sum,
    float_sum_numbers,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    real_multiplier,
    requantize,
    requantize_f32,
    requantize_parameters,
    sum_factors,
)

_Codes = NDArray[np.integer[Any]]

# Places by which TFLite lifts 8-bit operands of an addition before rescaling them.
_ADD_LEFT_SHIFT = 20


@dataclass(frozen=True)
class Affine:
    """Per-tensor parameters of one operand: real = scale * (code - zero_point)."""

    scale: float
    zero_point: int


def add(
    lhs: _Codes,
    rhs: _Codes,
    lhs_affine: Affine,
    rhs_affine: Affine,
    output: Affine,
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
        total = _add_shifted(lhs, rhs, lhs_affine, rhs_affine, output, *roundings)
    elif arithmetic is AddArithmetic.FLOAT_ONCE:
        affines = (lhs_affine, rhs_affine, output)
        numbers = float_sum_numbers([a.scale for a in affines], [a.zero_point for a in affines])
        total = float_sum(lhs, rhs, numbers)
    elif arithmetic is AddArithmetic.FIXED_ONCE:
        total = add_fixed(lhs, rhs, lhs_affine, rhs_affine, output)
    elif scaling := arithmetic.f32_scaling:
        total = _add_f32(lhs, rhs, lhs_affine, rhs_affine, output, scaling)
    else:
        left = rescale(lhs, lhs_affine, output, rounding, multiplier)
        total = left + rescale(rhs, rhs_affine, output, rounding, multiplier) - output.zero_point
    return np.clip(total, lo, hi)


def _add_f32(
    lhs: _Codes, rhs: _Codes, lhs_affine: Affine, rhs_affine: Affine, output: Affine, scaling: Scaling
) -> IntArray:
    """half_even(((l - z_l) * s_l + (r - z_r) * s_r) / s_y) + z_y in float32, or times 1 / s_y."""
    left, right = (
        dequantize_array(codes, affine.scale, affine.zero_point, 0)
        for codes, affine in ((lhs, lhs_affine), (rhs, rhs_affine))
    )
    whole = code_range(np.int32)
    return requantize_f32(left + right, output.scale, output.zero_point, *whole, Rounding.F32_RNE_ZP_LAST, scaling)


def rescale(codes: _Codes, affine: Affine, output: Affine, rounding: Rounding, multiplier: Multiplier) -> IntArray:
    """Quantized values at `affine` as quantized values at `output`, clamped to int32 only; untouched when the parameters are equal."""
    if affine == output:
        return codes.astype(np.int64)
    params = requantize_parameters(rounding, real_multiplier(affine.scale, [1.0], output.scale, multiplier))
    offsets = codes.astype(np.int64) - affine.zero_point
    return requantize(offsets, params, output.zero_point, *code_range(np.int32), rounding)


@dataclass(frozen=True)
class ShiftedOperands:
    """Operands at one scale with 20 more bits, and the (q, e) that takes their sum or difference to the output's."""

    lhs: IntArray
    rhs: IntArray
    multiplier: tuple[int, int]


def shifted_operands(
    lhs: _Codes,
    rhs: _Codes,
    lhs_affine: Affine,
    rhs_affine: Affine,
    output: Affine,
    rounding: Rounding = Rounding.FIXED32_DOUBLE,
) -> ShiftedOperands:
    """TFLite reference ADD and SUB.  With t = 2 * max(s_l, s_r), operands become round((x - z) * 2^20 * s / t).

    The factor two keeps both multipliers at one half or less, so the sum stays within int32; it is then multiplied by
    t / (2^20 * s_y).  Multipliers are formed in float64.  TOSA rescales x - z by 2^20 * s / t at once: the same number,
    for with one rounding 2^20 cancels.
    """
    left, right, twice_max = at_common_scale(lhs, rhs, lhs_affine, rhs_affine, _ADD_LEFT_SHIFT, rounding)
    return ShiftedOperands(left, right, quantize_multiplier(twice_max / ((1 << _ADD_LEFT_SHIFT) * output.scale)))


def at_common_scale(
    lhs: _Codes, rhs: _Codes, lhs_affine: Affine, rhs_affine: Affine, places: int, rounding: Rounding
) -> tuple[IntArray, IntArray, float]:
    """With t = 2 * max(s_l, s_r), the operands as round((x - z) * 2^places * s / t), and t; multipliers in float64."""
    twice_max = 2 * max(lhs_affine.scale, rhs_affine.scale)
    left, right = (
        multiply_by_quantized_multiplier(
            (codes.astype(np.int64) - affine.zero_point) << places,
            *quantize_multiplier(affine.scale / twice_max),
            rounding,
        )
        for codes, affine in ((lhs, lhs_affine), (rhs, rhs_affine))
    )
    return left, right, twice_max


def _add_shifted(
    lhs: _Codes,
    rhs: _Codes,
    lhs_affine: Affine,
    rhs_affine: Affine,
    output: Affine,
    operand_rounding: Rounding,
    sum_rounding: Rounding,
) -> IntArray:
    operands = shifted_operands(lhs, rhs, lhs_affine, rhs_affine, output, operand_rounding)
    total = operands.lhs + operands.rhs
    return multiply_by_quantized_multiplier(total, *operands.multiplier, sum_rounding) + output.zero_point


def add_fixed(
    lhs: _Codes, rhs: _Codes, lhs_affine: Affine, rhs_affine: Affine, output: Affine, sign: int = 1
) -> IntArray:
    """floor(((l - z_l) * f_l + sign * (r - z_r) * f_r) * 2^-shift + 1/2) + z_y with the factors of `sum_factors`."""
    factors = sum_factors(lhs_affine.scale, rhs_affine.scale, output.scale)
    left = (lhs.astype(np.int64) - lhs_affine.zero_point) * factors.lhs
    right = (rhs.astype(np.int64) - rhs_affine.zero_point) * (sign * factors.rhs)
    return ((left + right + (1 << (factors.shift - 1))) >> factors.shift) + output.zero_point


def mul(
    lhs: _Codes,
    rhs: _Codes,
    lhs_affine: Affine,
    rhs_affine: Affine,
    output: Affine,
    lo: int,
    hi: int,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """requantize((lhs - z_l) * (rhs - z_r)) with M = s_l * s_r / s_y, clamped to [lo, hi]; shapes broadcast, int64.

    TFLite evaluates M in float32 (`f32`), although it quantizes it to Q31 afterwards; TVM uses `f32_product`.
    """
    product = (lhs.astype(np.int64) - lhs_affine.zero_point) * (rhs.astype(np.int64) - rhs_affine.zero_point)
    f32 = real_multiplier(lhs_affine.scale, [rhs_affine.scale], output.scale, multiplier)
    return requantize(product, requantize_parameters(rounding, f32), output.zero_point, lo, hi, rounding)


def concat(
    operands: Sequence[_Codes],
    affines: Sequence[Affine],
    axis: int,
    output: Affine,
    lo: int,
    hi: int,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """Operands rescaled to the output's parameters where theirs differ, clamped to [lo, hi], joined along `axis`."""
    pairs = zip(operands, affines, strict=True)
    parts = [rescale(codes, affine, output, rounding, multiplier) for codes, affine in pairs]
    return np.clip(np.concatenate(parts, axis=axis), lo, hi)
