"""int32 accumulators to quantized quantized values, in the rounding modes of `Rounding`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.affine import along_axis, round_f32, saturate_f32
from qdialect.quant_math.choices import FloatRounding, Rounding, Scaling
from qdialect.quant_math.fixed_point import IntArray, multiply_by_quantized_multiplier
from qdialect.quant_math.multipliers import FixedMultiplier, RequantizeParameters
from qdialect.quant_math.scales import scale_factors

_FLOAT_ROUNDING = {
    Rounding.F32_RNE_ZP_LAST: FloatRounding.HALF_EVEN,
    Rounding.F32_RNE_ZP_FIRST: FloatRounding.HALF_EVEN,
    Rounding.F32_UP_ZP_FIRST: FloatRounding.HALF_UP,
    Rounding.F32_NEAREST_ZP_FIRST: FloatRounding.HALF_AWAY,
}


def requantize(
    acc: NDArray[np.integer[Any]],
    params: RequantizeParameters,
    output_zero_point: int,
    lo: int,
    hi: int,
    rounding: Rounding,
) -> IntArray:
    """clamp(round(acc * M) + z) to [lo, hi], int64 of the shape of `acc`.

    `acc` is [..., C] or any shape when there is one multiplier; its own zero point is already subtracted.

    * fixed rounding modes: integer multiply (see `multiply_by_quantized_multiplier`), then + z, then clamp.
    * `f32_rne_zp_last`: half_even(float32(acc) * m), then + z.  ONNX Runtime clamps to [lo - z, hi - z] before it
      rounds; the bounds are integers and rounding is monotonic, so the order makes no difference.
    * the `zp_first` rounding modes: v = float32(acc) * m, then v + float32(z), then round.  Both results are rounded to
      float32, and no multiply-add is fused.

    Raises:
        ValueError: the parameters do not belong to `rounding`.
    """
    if rounding.is_fixed != isinstance(params, FixedMultiplier):
        raise ValueError(f"requantize parameters must belong to {rounding}, but got {type(params).__name__}")
    if isinstance(params, FixedMultiplier):
        q, e = (along_axis(parameter, acc.ndim, -1) for parameter in (params.q, params.e))
        scaled = multiply_by_quantized_multiplier(acc, q, e, rounding)
        return np.clip(scaled + output_zero_point, lo, hi)
    with np.errstate(over="ignore"):
        value = acc.astype(np.float32) * along_axis(params.m, acc.ndim, -1)
    return _round_f32(value, output_zero_point, lo, hi, rounding)


def _round_f32(value: NDArray[np.float32], zero_point: int, lo: int, hi: int, rounding: Rounding) -> IntArray:
    if rounding is Rounding.F32_RNE_ZP_LAST:
        rounded = round_f32(value, FloatRounding.HALF_EVEN)
        return saturate_f32(rounded, lo - zero_point, hi - zero_point) + zero_point
    return saturate_f32(round_f32(value + np.float32(zero_point), _FLOAT_ROUNDING[rounding]), lo, hi)


def requantize_f32(
    values: NDArray[np.float32],
    output_scale: float,
    output_zero_point: int,
    lo: int,
    hi: int,
    rounding: Rounding,
    scaling: Scaling,
) -> IntArray:
    """clamp(round(values / s) + z) to [lo, hi], int64: ties and zero point as in the float rounding mode `rounding`.

    Other scalings multiply by a reciprocal instead, see `scale_factors`.  Every operation is rounded to float32.
    NaN, which an infinite bias may lead to, becomes `lo`.

    Raises:
        ValueError: `rounding` is a fixed-point one.
    """
    if rounding.is_fixed:
        raise ValueError(f"rounding must be of f32 values, but got {rounding}")
    factor = np.float32(scale_factors(output_scale, scaling))
    with np.errstate(over="ignore"):
        value = values / factor if scaling is Scaling.DIVIDE else values * factor
    value = np.where(np.isnan(value), -np.float32(np.inf), value)
    return _round_f32(value, output_zero_point, lo, hi, rounding)
