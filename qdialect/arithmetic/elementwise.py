"""Computes functions of two quantized tensors, and concatenation; operands are rescaled to the output's scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.choices import (
    AddArithmetic,
    FloatRounding,
    Multiplier,
    NanPolicy,
    Rounding,
    Scaling,
    SubArithmetic,
)
from qdialect.arithmetic.machine import NUMPY, Machine, V
from qdialect.arithmetic.multipliers import (
    IntArray,
    doubling_high_multiply,
    float_sum,
    float_sum_numbers,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    real_multiplier,
    requantize_parameters,
    rounding_shift_right,
    sum_factors,
)
from qdialect.arithmetic.quantization import (
    BinaryQuantization,
    QuantizedArray,
    QuantParams,
    quantize_array,
    quantized_range,
)
from qdialect.arithmetic.requantization import requantize
from qdialect.arithmetic.softmax_tables import reciprocal

# Two operands at one scale: the fixed point of TFLite's sums, differences and squared differences.
#
# With t = 2 * max(s_l, s_r), an operand becomes round((x - z) * 2^shift * s / t).  The factor two keeps both
# multipliers
# at one half or less, so that a sum of 8-bit values stays within int32 with 20 more bits, and a squared difference
# with
# 7.  Multipliers are formed in float64.  TOSA rescales x - z by 2^20 * s / t at once: the same number, for with one
# rounding 2^20 cancels.

_SUM_SHIFT = 20
_SQUARE_SHIFT = 7
_DOUBLE = Rounding.FIXED32_DOUBLE
PairFunction = Callable[[Machine[Any], Any, Any], Any]


@dataclass(frozen=True)
class CommonScale:
    """The multipliers of both operands and of the result, and the bits by which offsets are shifted up before."""

    shift: int
    lhs: float
    rhs: float
    output: float
    """From the result at the common scale to the output's."""


def scale_of_sum(lhs: QuantParams, rhs: QuantParams, output: QuantParams) -> CommonScale:
    """Of a sum or a difference, which is multiplied by t / (2^20 * s_y)."""
    twice_max = 2 * max(lhs.scale, rhs.scale)
    to_output = twice_max / ((1 << _SUM_SHIFT) * output.scale)
    return CommonScale(_SUM_SHIFT, lhs.scale / twice_max, rhs.scale / twice_max, to_output)


# Functions that compute in integers: the reference runs them on arrays, and kernels write them as their bodies.


@dataclass(frozen=True)
class OffsetFunction:
    """A function of the offsets of two operands from their zero points, whose result is the offset of the result's."""

    multipliers: tuple[tuple[str, float, Rounding], ...]
    """The name of each multiplier, its value, and how products with it are rounded."""
    compute: Callable[[Machine[Any], Sequence[Callable[[Any], Any]], Any, Any], Any]
    """``compute(machine, products with the multipliers, lhs, rhs)``; all are i64."""

    def of(self, lhs: QuantizedArray, rhs: QuantizedArray, quantization: BinaryQuantization) -> IntArray:
        """The quantized values of the result, within its bounds."""
        offset = self.compute(NUMPY, [_products(*each) for each in self.multipliers], *quantization.offsets(lhs, rhs))
        return quantization.clip(offset + quantization.output.zero_point)


def _products(_: str, multiplier: float, rounding: Rounding) -> Callable[[IntArray], IntArray]:
    return lambda values: multiply_by_quantized_multiplier(values, *quantize_multiplier(multiplier), rounding)


def _at_common_scale(common: CommonScale, result: Rounding, operands: Rounding, f: PairFunction) -> OffsetFunction:
    """`f` of both operands at one scale with more bits, rescaled to the output's."""

    def compute(m: Machine[V], products: Sequence[Callable[[V], V]], left: V, right: V) -> V:
        shift = m.constant(common.shift, "i64")
        at_scale = [
            rescale(m.binary("arith.shli", x, shift)) for rescale, x in zip(products, (left, right), strict=False)
        ]
        return products[2](f(m, *at_scale))

    named = ("lhs", common.lhs, operands), ("rhs", common.rhs, operands), ("result", common.output, result)
    return OffsetFunction(named, compute)


def shifted_sum(
    params: tuple[QuantParams, QuantParams, QuantParams], roundings: tuple[Rounding, Rounding], sign: int
) -> OffsetFunction:
    """TFLite reference ADD and, with `sign` -1, SUB: both operands at one scale with 20 more bits.

    `roundings` are those of operands and result.
    """
    operands, result = roundings
    return _at_common_scale(scale_of_sum(*params), result, operands, total_of if sign > 0 else difference)


def squared_difference(params: tuple[QuantParams, QuantParams, QuantParams]) -> OffsetFunction:
    """TFLite SQUARED_DIFFERENCE: both operands at one scale with 7 more bits, then the square of what they differ by.

    Every rounding is `fixed32_double`.
    """

    def square(m: Machine[V], left: V, right: V) -> V:
        apart = m.subtract(left, right)
        return m.multiply(apart, apart)

    lhs, rhs, output = params
    twice_max = 2 * max(lhs.scale, rhs.scale)
    # The square is multiplied by t^2 / (2^14 * s_y).
    to_output = twice_max * twice_max / ((1 << (2 * _SQUARE_SHIFT)) * output.scale)
    common = CommonScale(_SQUARE_SHIFT, lhs.scale / twice_max, rhs.scale / twice_max, to_output)
    return _at_common_scale(common, _DOUBLE, _DOUBLE, square)


def prelu(params: tuple[QuantParams, QuantParams, QuantParams]) -> OffsetFunction:
    """TFLite PRELU: (l - z_l) times s_l / s_y where not negative, (l - z_l) * (r - z_r) times s_l * s_r / s_y else.

    Multipliers are evaluated in float32, every rounding is `fixed32_double`.
    """
    data, slope, output = params
    positive, negative = real_multiplier(data.scale, [1.0, slope.scale], output.scale, Multiplier.F32).tolist()

    def compute(m: Machine[V], products: Sequence[Callable[[V], V]], left: V, right: V) -> V:
        is_positive = m.compare("sge", left, m.constant(0, "i64"))
        product = m.multiply(left, right)
        return m.select(is_positive, products[0](left), products[1](product))

    return OffsetFunction((("positive", positive, _DOUBLE), ("negative", negative, _DOUBLE)), compute)


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
        total = f32_pair(lhs, rhs, quantization, total_of, scaling)
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
        return shifted_sum(quantization.params, roundings, sign).of(lhs, rhs, quantization)
    if arithmetic is AddArithmetic.FIXED_ONCE:
        return _sum_fixed(lhs, rhs, quantization, sign)
    output = quantization.output
    left = rescale(lhs, quantization.lhs, output, rounding, multiplier)
    right = rescale(rhs, quantization.rhs, output, rounding, multiplier)
    # Both carry the output's zero point.
    return left - output.zero_point + sign * (right - output.zero_point) + output.zero_point


def rescale(
    values: QuantizedArray, own: QuantParams, output: QuantParams, rounding: Rounding, multiplier: Multiplier
) -> IntArray:
    """`values` at the parameters `own` as values at `output`, clamped to int32 only; untouched where both are equal."""
    if own == output:
        return values.astype(np.int64)
    params = requantize_parameters(rounding, real_multiplier(own.scale, [1.0], output.scale, multiplier))
    offsets = values.astype(np.int64) - own.zero_point
    return requantize(offsets, params, output.zero_point, *quantized_range(np.int32), rounding)


def _sum_fixed(lhs: QuantizedArray, rhs: QuantizedArray, quantization: BinaryQuantization, sign: int) -> IntArray:
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


def total_of(m: Machine[V], left: V, right: V) -> V:
    """left + right."""
    return m.add(left, right)


def difference(m: Machine[V], left: V, right: V) -> V:
    """left - right."""
    return m.subtract(left, right)


def quotient(m: Machine[V], left: V, right: V) -> V:
    """left / right."""
    return m.binary("arith.divf", left, right)


def larger(m: Machine[V], left: V, right: V) -> V:
    """The larger of two numbers."""
    return m.select(m.compare("ogt", left, right), left, right)


def smaller(m: Machine[V], left: V, right: V) -> V:
    """The smaller of two numbers."""
    return m.select(m.compare("olt", left, right), left, right)


def with_slope(m: Machine[V], data: V, slope: V) -> V:
    """`data` where positive, ``data * slope`` elsewhere."""
    product = m.multiply(data, slope)
    return m.select(m.compare("ogt", data, m.constant(0, "f32")), data, product)


def f32_pair(
    lhs: QuantizedArray,
    rhs: QuantizedArray,
    quantization: BinaryQuantization,
    f: PairFunction,
    scaling: Scaling = Scaling.DIVIDE,
) -> IntArray:
    """clamp(half_even(f(s_l * (l - z_l), s_r * (r - z_r)) / s_y) + z_y) to the bounds, every operation in float32.

    Other scalings multiply by a reciprocal.  ONNX Runtime computes so for an operator between DequantizeLinear and
    QuantizeLinear that it has no integer kernel for.  NaN becomes the lower bound.
    """
    with np.errstate(all="ignore"):
        values = np.asarray(f(NUMPY, *quantization.f32_values(lhs, rhs)), dtype=np.float32)
    how = (FloatRounding.HALF_EVEN, scaling, NanPolicy.MIN)
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
        return f32_pair(lhs, rhs, quantization, difference)
    how = (arithmetic.addition, rounding, multiplier)
    return quantization.clip(signed_sum(lhs, rhs, quantization, -1, *how))


def extreme(lhs: QuantizedArray, rhs: QuantizedArray, quantization: BinaryQuantization, is_max: bool) -> IntArray:
    """The larger or the smaller f32 value, clamped to its bounds; integers are compared where parameters are equal."""
    if len(set(quantization.params)) == 1:
        function = np.maximum if is_max else np.minimum
        return quantization.clip(function(lhs.astype(np.int64), rhs.astype(np.int64)))
    return f32_pair(lhs, rhs, quantization, larger if is_max else smaller)


def div_fixed(lhs: QuantizedArray, rhs: QuantizedArray, quantization: BinaryQuantization) -> IntArray:
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
    positive = np.maximum(divisors, 1).astype(np.int32)
    # Bits after the sign bit that repeat it (gemmlowp CountLeadingSignBits).
    headroom = _leading_zeros(np.where(dividends >= 0, dividends, ~dividends)) - 1
    quotients = doubling_high_multiply(dividends << headroom, reciprocal(NUMPY, positive))
    shift = e - (31 - _leading_zeros(positive)) - headroom
    scaled = doubling_high_multiply(quotients, q)
    values = rounding_shift_right(scaled, np.clip(-shift, 0, 31)) << np.clip(shift, 0, 31)
    values = np.where(shift < -31, (scaled >> np.clip(-shift - 32, 0, 31)) + (scaled >= 0), values)
    values = np.where(divisors == 0, np.sign(dividends) * 2**31, values)
    return quantization.clip(values + quantization.output.zero_point)


def _leading_zeros(values: IntArray | NDArray[np.int32]) -> IntArray:
    return NUMPY.unary("math.ctlz", values.astype(np.int32)).astype(np.int64)
