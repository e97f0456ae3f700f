"""leaky_relu in the integer arithmetic of two runtimes, tabulated over all quantized values."""

from __future__ import annotations

import numpy as np

from qdialect.quant_math.affine import quantized_range
from qdialect.quant_math.choices import Multiplier, Rounding
from qdialect.quant_math.fixed_point import multiply_by_quantized_multiplier
from qdialect.quant_math.multipliers import quantize_multiplier, real_multiplier, requantize_parameters
from qdialect.quant_math.requantize import requantize
from qdialect.quant_math.tables import QuantizedDtype, Table, encode_table, table_values


def tflite_leaky_relu_table(
    alpha: float,
    source: QuantizedDtype,
    result: QuantizedDtype,
    rounding: Rounding = Rounding.FIXED32_DOUBLE,
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
    alpha: float,
    source: QuantizedDtype,
    result: QuantizedDtype,
    rounding: Rounding = Rounding.FIXED64_UP,
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
