"""Functions of two quantized tensors beside sum and product; operands broadcast, results are int64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qdialect.quant_math.affine import FloatArray, quantize_array
from qdialect.quant_math.choices import FloatRounding, Multiplier, NanPolicy, Rounding, Scaling, SubArithmetic
from qdialect.quant_math.common_scale import scale_of_squared_difference
from qdialect.quant_math.elementwise import signed_sum
from qdialect.quant_math.fixed_point import (
    IntArray,
    doubling_high_multiply,
    multiply_by_quantized_multiplier,
    rounding_shift_right,
)
from qdialect.quant_math.multipliers import quantize_multiplier, real_multiplier
from qdialect.quant_math.quant_params import BinaryQuantization, QuantizedArray, QuantParams
from qdialect.quant_math.softmax_tables import reciprocal

F32Function = Callable[[FloatArray, FloatArray], FloatArray]

_DOUBLE = Rounding.FIXED32_DOUBLE


def f32_pair(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
    f: F32Function,
) -> IntArray:
    """clamp(half_even(f(s_l * (l - z_l), s_r * (r - z_r)) / s_y) + z_y) to the bounds, every operation in float32.

    What ONNX Runtime computes for an operator between DequantizeLinear and QuantizeLinear that it has no integer kernel
    for.  NaN becomes the lower bound.
    """
    with np.errstate(all="ignore"):
        values = np.asarray(f(*quantization.f32_values(lhs, rhs)), dtype=np.float32)
    how = (FloatRounding.HALF_EVEN, Scaling.DIVIDE, NanPolicy.MIN)
    output = quantization.output
    quantized = quantize_array(values, output.scale, output.zero_point, 0, np.int32, *how)
    return quantization.clip(quantized.astype(np.int64))


def sub(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
    arithmetic: SubArithmetic,
    rounding: Rounding,
    multiplier: Multiplier,
) -> IntArray:
    """lhs - rhs at the output's parameters, clamped to its bounds.

    `rounding` and `multiplier` govern the rescales of `requantize_each`; the other arithmetics fix theirs.
    """
    if arithmetic.addition is None:
        return f32_pair(lhs, rhs, quantization, np.subtract)
    how = (arithmetic.addition, rounding, multiplier)
    return quantization.clip(signed_sum(lhs, rhs, quantization, -1, *how))


def extreme(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
    is_max: bool,
) -> IntArray:
    """The larger or the smaller f32 value, clamped to its bounds; integers are compared where parameters are equal."""
    function = np.maximum if is_max else np.minimum
    if len(set(quantization.params)) == 1:
        return quantization.clip(function(lhs.astype(np.int64), rhs.astype(np.int64)))
    return f32_pair(lhs, rhs, quantization, function)


def squared_difference(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
) -> IntArray:
    """TFLite SQUARED_DIFFERENCE: both operands at one scale with 7 more bits, then the square of what they differ by.

    Every rounding is `fixed32_double`.
    """
    scale = scale_of_squared_difference(*quantization.params)
    left, right = scale.of_offsets(*quantization.offsets(lhs, rhs), _DOUBLE)
    square = multiply_by_quantized_multiplier((left - right) ** 2, *quantize_multiplier(scale.output), _DOUBLE)
    return quantization.clip(square + quantization.output.zero_point)


def prelu_fixed(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
) -> IntArray:
    """TFLite PRELU: (l - z_l) times s_l / s_y where not negative, (l - z_l) * (r - z_r) times s_l * s_r / s_y else.

    Multipliers are evaluated in float32, every rounding is `fixed32_double`.
    """
    offsets, slopes = quantization.offsets(lhs, rhs)
    products, output = offsets * slopes, quantization.output
    values = [
        multiply_by_quantized_multiplier(
            factors, *quantize_multiplier(prelu_multiplier(slope, quantization.lhs, output)), _DOUBLE
        )
        for factors, slope in ((offsets, 1.0), (products, quantization.rhs.scale))
    ]
    return quantization.clip(np.where(offsets >= 0, *values) + output.zero_point)


def prelu_multiplier(slope_scale: float, data: QuantParams, output: QuantParams) -> float:
    """s_l * slope_scale / s_y as TFLite's PRELU evaluates it."""
    return float(real_multiplier(data.scale, [slope_scale], output.scale, Multiplier.F32)[0])


def prelu_f32(lhs: FloatArray, rhs: FloatArray) -> FloatArray:
    """x where positive, x * slope elsewhere."""
    return np.where(lhs > 0, lhs, lhs * rhs)


def div_fixed(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
) -> IntArray:
    """TFLite DIV of quantized tensors: the dividend times the divisor's Q31 reciprocal, rescaled by s_l / (s_r * s_y).

    The dividend is first shifted up as far as 32 bits allow; the multiplier is evaluated in float32.  A divisor of zero
    gives the end of the clamp on the dividend's side; nothing divided by nothing gives the zero point.

    The kernel shifts quotients that are small by more than 31 bits, which is undefined in C++.  LiteRT on x86 takes the
    shift modulo 32 there, and rounds with a mask of 32 ones: the quotient is large, and of nothing it is one.
    """
    dividends, divisors = np.broadcast_arrays(*quantization.offsets(lhs, rhs))
    dividends = np.where(divisors < 0, -dividends, dividends)
    divisors = np.abs(divisors)
    lhs_scale, rhs_scale, output_scale = map(
        np.float32, (quantization.lhs.scale, quantization.rhs.scale, quantization.output.scale)
    )
    with np.errstate(over="ignore"):
        multiplier = np.minimum(lhs_scale / (rhs_scale * output_scale), np.finfo(np.float32).max)
    q, e = quantize_multiplier(float(multiplier))
    inverses, bits = reciprocal(np.maximum(divisors, 1))
    headroom = _leading_sign_bits(dividends)
    quotients = doubling_high_multiply(dividends << headroom, inverses)
    # The sum of a softmax, for which the reciprocal is, has 12 integer bits, and a divisor 31.
    shift = e - (bits + 19) - headroom
    scaled = doubling_high_multiply(quotients, q)
    values = rounding_shift_right(scaled, np.clip(-shift, 0, 31)) << np.clip(shift, 0, 31)
    values = np.where(shift < -31, (scaled >> np.clip(-shift - 32, 0, 31)) + (scaled >= 0), values)
    values = np.where(divisors == 0, np.sign(dividends) * 2**31, values)
    return quantization.clip(values + quantization.output.zero_point)


def _leading_sign_bits(values: IntArray) -> IntArray:
    """Bits of an int32 after the sign bit that repeat it (gemmlowp CountLeadingSignBits)."""
    magnitude = np.where(values >= 0, values, ~values)
    lengths = np.array([int(v).bit_length() for v in magnitude.ravel()]).reshape(values.shape)
    return (31 - lengths).astype(np.int64)
