"""A fused op's stage of real numbers, spelled out: dequantize, bias, residual, activation, quantize."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import arith, ir
from qdialect.dialect import AnyFused, BroadcastOp, DequantizeOp, QuantizeOp, build
from qdialect.dialect.attribute_kinds import LARGEST_SCALE
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.float_chains import build_activation
from qdialect.quant_math import RealScaling, Rounding, Scaling, real_multiplier

SCALINGS = {Scaling.DIVIDE: RealScaling.DIVIDE, Scaling.RECIPROCAL: RealScaling.RECIPROCAL}
"""The real scaling of a fused op for that of a `qnn.quantize`."""


def has_real_bias(op: AnyFused) -> bool:
    """Whether the bias of `op` is added to real numbers and not to accumulators."""
    return element_of(op.bias.type) == "f32"


def spelling_obstacle(op: AnyFused) -> str | None:
    """Why the stage cannot be spelled out, None where it can."""
    if op.rounding is not Rounding.F32_RNE_ZP_LAST:
        return f"must have rounding f32_rne_zp_last, that of qnn.quantize, but got {op.rounding}"
    scales = _scales(op)
    outside = next((scale for scale in scales if not 0 < scale <= LARGEST_SCALE), None)
    return None if outside is None else f"must have products of scales in (0, 2^30], but got {outside}"


def spelled_out(op: AnyFused, accumulators: ir.Value, element: str) -> ir.Value:
    """The codes, of type `element`, that the real stage of `op` makes of `accumulators`, unclamped."""
    axis = len(shape_of(accumulators.type)) - 1
    real = _dequantized(accumulators, _scales(op), 0, axis)
    if has_real_bias(op):
        bias = build(BroadcastOp, op.bias, element="f32", shape=shape_of(accumulators.type)).output
        real = arith.addf(real, bias)
    if op.residual is not None and not op.adds_codes:
        real = arith.addf(real, _dequantized(op.residual, (op.residual_scale,), op.residual_zero_point, axis))
    return build(
        QuantizeOp,
        build_activation(op.activation, real, op.activation_alpha),
        element=element,
        scales=(op.output_scale,),
        zero_points=(op.output_zero_point,),
        axis=axis,
        scaling=next(plain for plain, real in SCALINGS.items() if real is op.real_scaling),
    ).output


def _dequantized(codes: ir.Value, scales: tuple[float, ...], zero_point: int, axis: int) -> ir.Value:
    return build(DequantizeOp, codes, element="f32", scales=scales, zero_points=(zero_point,), axis=axis).output


def _scales(op: AnyFused) -> tuple[float, ...]:
    products = real_multiplier(op.input_scale, op.weight_scales, 1.0, op.multiplier)
    return tuple(products.astype(np.float32).astype(np.float64).tolist())
