"""A fused op's stage of real numbers as separate ops: how it is spelled out, and what tells that it is one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import arith, ir
from qdialect.dialect import AnyContraction, AnyFused, BroadcastOp, DequantizeOp, QuantizeOp, build
from qdialect.dialect.attribute_kinds import LARGEST_SCALE
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.float_chains import build_activation
from qdialect.passes.matching import producer
from qdialect.passes.pattern import Refusal
from qdialect.quant_math import Multiplier, RealScaling, Rounding, Scaling, real_multiplier

SCALINGS = {scaling: RealScaling(scaling.value) for scaling in Scaling}
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


def contraction_behind(value: ir.Value) -> AnyContraction | None:
    """The first contraction whose dequantized accumulators `value` depends on, through float ops alone."""
    seen: set[ir.Value] = set()
    pending = [value]
    while pending:
        found = pending.pop()
        op = producer(found)
        if op is None or found in seen:
            continue
        seen.add(found)
        if isinstance(op, DequantizeOp):
            contraction = producer(op.input)
            if isinstance(contraction, AnyContraction):
                return contraction
        elif op.operation.name.startswith(("arith.", "math.")):
            pending += op.operation.operands
    return None


def channel_values(value: ir.Value) -> NDArray[np.float32] | None:
    """The constant real number of each channel, float32[C], where `value` differs along its last dimension alone."""
    shape = shape_of(value.type)
    broadcast = producer(value)
    array = constant_value(broadcast.input if isinstance(broadcast, BroadcastOp) else value)
    if array is None or array.dtype != np.float32 or not shape:
        return None
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    if np.any(rows != rows[0]):
        return None
    return np.broadcast_to(rows[0], shape[-1:])


def multiplier_of(contraction: AnyContraction, dequantize: DequantizeOp) -> Multiplier | Refusal:
    """In which precision the scales of `dequantize` are the products of the contraction's own."""
    last = len(shape_of(contraction.output.type)) - 1
    channels = shape_of(contraction.output.type)[last]
    if any(dequantize.zero_points):
        return Refusal("must dequantize accumulators with zero point 0")
    if len(dequantize.scales) > 1 and dequantize.axis != last:
        return Refusal(f"must dequantize accumulators along axis {last}, but got {dequantize.axis}")
    wanted = np.broadcast_to(np.array(dequantize.scales, dtype=np.float32), channels)
    for multiplier in (Multiplier.F32, Multiplier.F64):
        products = real_multiplier(contraction.input_scale, contraction.weight_scales, 1.0, multiplier)
        if np.array_equal(np.broadcast_to(products.astype(np.float32), channels), wanted):
            return multiplier
    return Refusal("must dequantize accumulators with the products of input_scale and weight_scales")
